"""The storage client: local paths, and URLs of any protocol of fsspec."""

from __future__ import annotations

from bpe_beam.storage.client import Storage
from bpe_beam.storage.error_messages import named_errors
from bpe_beam.storage.names import PathName, path_name, redact
from bpe_beam.storage.stored_file import StoredFile

__all__ = ["PathName", "Storage", "StoredFile", "named_errors", "path_name", "redact"]

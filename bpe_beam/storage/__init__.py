"""The one door to storage: local paths, and any protocol of fsspec by its URL."""

from __future__ import annotations

from bpe_beam.storage.client import Storage
from bpe_beam.storage.failures import named_errors
from bpe_beam.storage.file_info import Found
from bpe_beam.storage.names import redact

__all__ = ["Found", "Storage", "named_errors", "redact"]

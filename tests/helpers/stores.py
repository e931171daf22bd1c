"""The stores that the tests talk to, each a folder of its own on a server of its own."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starting import azurite, go_server, moto_command, started

from bpe_beam.storage import Storage

USER, SECRET = "somebody-known", "hunter2/hunter2+hunter2="
BUCKET = "bucket-of-tests"
# The account and the key that Azurite has; published, and of no use elsewhere.
AZURE_USER = "devstoreaccount1"
AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


@dataclass(frozen=True)
class Store:
    """A running store.

    Attributes:
        name: Which server it is.
        top: The URL of the bucket.
        options: Storage options.
        port: Where it listens.
        moved: The same store at another port, such as that of a proxy.
    """

    name: str
    top: str
    options: dict[str, dict[str, Any]]
    port: int
    moved: Callable[[int], Store] = field(repr=False)

    @property
    def storage(self) -> Storage:
        """The storage client of this store."""
        return Storage(self.options)

    def folder(self) -> str:
        """Return the URL of a folder that no other test uses."""
        return f"{self.top}/{uuid.uuid4().hex[:12]}"

    @property
    def arguments(self) -> tuple[str, str]:
        """The options of the command line."""
        return "--storage-options", json.dumps(self.options)

    def file_system(self) -> Any:
        """Return fsspec's own file system, without our storage client."""
        return self.storage.remote.connect(self.top)[0]


def s3_options(port: int, **more: Any) -> dict[str, dict[str, Any]]:
    """Return the options of an S3 server at this port."""
    region = {"region_name": "us-east-1"}
    where = {"endpoint_url": f"http://127.0.0.1:{port}", "client_kwargs": region}
    return {"s3": {"key": USER, "secret": SECRET, **where, **more}}


def _s3(name: str, port: int) -> Store:
    return Store(name, f"s3://{BUCKET}", s3_options(port), port, lambda other: _s3(name, other))


def _gcs(port: int) -> Store:
    options = {"gs": {"endpoint_url": f"http://127.0.0.1:{port}", "token": "anon"}}
    return Store("fake-gcs-server", f"gs://{BUCKET}", options, port, _gcs)


def _azure(port: int) -> Store:
    told = (
        "DefaultEndpointsProtocol=http",
        f"AccountName={AZURE_USER}",
        f"AccountKey={AZURE_KEY}",
        f"BlobEndpoint=http://127.0.0.1:{port}/{AZURE_USER};",
    )
    options = {"az": {"connection_string": ";".join(told)}}
    return Store("azurite", f"az://{BUCKET}", options, port, _azure)


@contextlib.contextmanager
def versitygw(folder: Path) -> Iterator[Store]:
    """Run S3 on a folder of files."""
    (folder / "data" / BUCKET).mkdir(parents=True)
    server = [go_server("versitygw"), "--access", USER, "--secret", SECRET]
    data = ["--region", "us-east-1", "posix", str(folder / "data")]
    with started(lambda port: [*server, "--port", f"127.0.0.1:{port}", *data], folder) as port:
        yield _s3("versitygw", port)


@contextlib.contextmanager
def moto(folder: Path) -> Iterator[Store]:
    """Run S3 in memory."""
    with started(moto_command, folder) as port:
        store = _s3("moto", port)
        store.file_system().call_s3("create_bucket", Bucket=BUCKET)
        yield store


@contextlib.contextmanager
def gofakes3(folder: Path) -> Iterator[Store]:
    """Run S3 in memory, by a server that ignores conditional writes."""
    server = [go_server("gofakes3"), "-backend", "memory", "-initialbucket", BUCKET]
    with started(lambda port: [*server, "-host", f"127.0.0.1:{port}"], folder) as port:
        yield _s3("gofakes3", port)


@contextlib.contextmanager
def fake_gcs(folder: Path) -> Iterator[Store]:
    """Run Google Cloud Storage in memory."""
    server = [go_server("fake-gcs-server"), "-scheme", "http", "-host", "127.0.0.1"]
    server += ["-backend", "memory"]

    def command(port: int) -> list[str]:
        return [*server, "-port", str(port), "-external-url", f"http://127.0.0.1:{port}"]

    with started(command, folder) as port:
        store = _gcs(port)
        store.file_system().mkdir(BUCKET)
        yield store


@contextlib.contextmanager
def azure(folder: Path) -> Iterator[Store]:
    """Run Azure's blob storage in memory."""
    server = [*azurite(), "--blobHost", "127.0.0.1"]
    server += ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    with started(lambda port: [*server, "--blobPort", str(port)], folder) as port:
        store = _azure(port)
        store.file_system().mkdir(BUCKET)
        yield store


NEEDED = {
    **{"versitygw": "s3fs", "moto": "s3fs", "gofakes3": "s3fs"},
    **{"fake-gcs-server": "gcsfs", "azurite": "adlfs"},
}
"""What must be installed to talk to a store."""
STORES = {"versitygw": versitygw, "moto": moto, "fake-gcs-server": fake_gcs, "azurite": azure}
"""Those that do all that jobs ask for."""
CARELESS = {"gofakes3": gofakes3}
"""Those that ignore conditional writes."""

"""The manifest of a counts folder: what is refused, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from counts_folders import write_folder
from msgspec.structs import replace

from bpe_beam.counts.manifest import read_manifest
from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import with_checksum

pytestmark = pytest.mark.quick


STORAGE = Storage()


def change(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Edits the manifest's JSON in place."""
    path = folder / "__manifest"
    document = json.loads(path.read_bytes())
    edit(document)
    del document["sha256"]
    path.write_bytes(with_checksum(document))


class TestManifests:
    def test_no_folder_and_no_manifest(self, tmp_path: Path) -> None:
        for folder in (tmp_path, tmp_path / "missing"):
            with pytest.raises(UsageError, match=r"is no counts folder: it has no __manifest"):
                read_manifest(STORAGE, str(folder))

    def test_not_finished(self, tmp_path: Path) -> None:
        write_folder(tmp_path)
        (tmp_path / "__manifest").unlink()
        (tmp_path / "__job").write_text("{}")
        with pytest.raises(UsageError, match="it has no __manifest: run its job again"):
            read_manifest(STORAGE, str(tmp_path))

    def test_file(self, tmp_path: Path) -> None:
        """Readable: text as it is, two spaces, a newline at the end; the same every time."""
        manifest = write_folder(tmp_path)
        text = manifest.to_bytes().decode()
        assert text.startswith('{\n  "version": 1,\n  "fingerprint": "')
        assert text.endswith("\n}\n")
        assert '"语.jsonl.gz"' in text
        assert manifest.to_bytes() == text.encode()

    @pytest.mark.parametrize(
        "settings",
        [{"normalizer": "nfc"}, {"pretokenizer": "cl100k"}, {"special_tokens": ("<s>",)},
         {"special_tokens": ("é ", "<s>")}],
    )  # fmt: skip
    def test_fingerprint_tells_the_kind_of_words(
        self, tmp_path: Path, settings: dict[str, Any]
    ) -> None:
        manifest = write_folder(tmp_path)
        assert replace(manifest, **settings).fingerprint != manifest.fingerprint
        assert replace(manifest, documents=1).fingerprint == manifest.fingerprint

    def test_settings_that_were_changed(self, tmp_path: Path) -> None:
        write_folder(tmp_path)
        change(tmp_path, lambda document: document.update(special_tokens=[]))
        with pytest.raises(DataError, match="the fingerprint does not match the settings"):
            read_manifest(STORAGE, str(tmp_path))

    @pytest.mark.parametrize("fingerprint", ["", "0" * 64, None, 5])
    def test_fingerprint_that_was_changed(self, tmp_path: Path, fingerprint: object) -> None:
        write_folder(tmp_path)
        change(tmp_path, lambda document: document.update(fingerprint=fingerprint))
        with pytest.raises(DataError, match="the fingerprint does not match the settings"):
            read_manifest(STORAGE, str(tmp_path))

    @pytest.mark.parametrize("version", [0, 2, "1", None, [1], True])
    def test_another_version(self, tmp_path: Path, version: object) -> None:
        write_folder(tmp_path)
        change(tmp_path, lambda document: document.update(version=version))
        with pytest.raises(UsageError, match="version must be 1 for this bpe-beam, got "):
            read_manifest(STORAGE, str(tmp_path))

    @pytest.mark.parametrize(
        "data",
        [b"", b"{", b"[]", b"null", b"1", b'"text"', b"{}", b"\xff\xfe{}", b"[" * 100_000,
         b'{"version": 1}', b"NaN", b"9" * 5000, b"\0"],
    )  # fmt: skip
    def test_no_manifest(self, tmp_path: Path, data: bytes) -> None:
        (tmp_path / "__manifest").write_bytes(data)
        with pytest.raises(DataError, match=r"__manifest: "):
            read_manifest(STORAGE, str(tmp_path))

    def test_a_field_that_is_missing(self, tmp_path: Path) -> None:
        write_folder(tmp_path)
        whole = json.loads((tmp_path / "__manifest").read_bytes())
        for name in whole:
            cut = {key: value for key, value in whole.items() if key not in (name, "sha256")}
            data = json.dumps(cut).encode() if name == "sha256" else with_checksum(cut)
            (tmp_path / "__manifest").write_bytes(data)
            with pytest.raises(DataError, match=name):
                read_manifest(STORAGE, str(tmp_path))

    @pytest.mark.parametrize(
        "parts",
        [None, 5, [5], [[]], [{}], [{"name": "a"}],
         [{"name": "a", "unique_words": 1, "word_bytes": 1, "bytes": 1, "sha256": "", "x": 1}]],
    )  # fmt: skip
    def test_parts_that_are_none(self, tmp_path: Path, parts: object) -> None:
        write_folder(tmp_path)
        change(tmp_path, lambda document: document.update(parts=parts))
        with pytest.raises(DataError, match=r"__manifest: .*(parts|inputs)"):
            read_manifest(STORAGE, str(tmp_path))

    @pytest.mark.parametrize("inputs", [None, 5, [5], ["a"], [["a"]], [["a", 1, 2]]])
    def test_inputs_that_are_none(self, tmp_path: Path, inputs: object) -> None:
        write_folder(tmp_path)
        change(tmp_path, lambda document: document.update(inputs=inputs))
        with pytest.raises(DataError, match=r"__manifest: .*(parts|inputs)"):
            read_manifest(STORAGE, str(tmp_path))

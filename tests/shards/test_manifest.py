"""The manifest: its bytes, and that nothing but a manifest is read as one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bpe_beam.errors import DataError
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.shards.manifest import Manifest, Rejects, TokenizerInfo, read_manifest
from bpe_beam.shards.shard_rows import Shard, SourceSlice, TokenlessSplit, Totals
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import VERSION, json_bytes, with_checksum

pytestmark = pytest.mark.quick

A, B, C, D = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)


def shard(index: int, slices: tuple[SourceSlice, ...], rejects: int) -> Shard:
    name = f"shard-0000{index}-of-00002"
    return Shard(
        name=name,
        split=2 * index,
        slices=slices,
        documents=3 + index,
        text_bytes=100,
        tokens=20,
        rejects=rejects,
        files=(FileInfo(f"{name}.bin", 40, C), FileInfo(f"{name}.idx", 90, D)),
    )


SHARDS = (
    shard(0, (SourceSlice("a.jsonl", 0, 90), SourceSlice("ü/b #1.jsonl.gz", 0, 70)), 2),
    shard(1, (SourceSlice("a.jsonl", 90, 150),), 0),
)
TOKENLESS = (
    TokenlessSplit(
        split=1, slices=(SourceSlice("a.jsonl", 90, 90),), documents=1, text_bytes=0, rejects=0
    ),
)
MANIFEST = Manifest(
    format="megatron",
    version=VERSION,
    tokenizer=TokenizerInfo(A, 300),
    settings={
        "append": "<|endoftext|>",
        "prepend": None,
        "allowed_special": ["<a>"],
        "text_field": "text",
    },
    plan={"fingerprint": B, "files": ["opaque"], "splits": [{"any": 1}, 2, 3]},
    shards=SHARDS,
    totals=Totals.of(SHARDS, TOKENLESS),
    rejects=Rejects(
        {"no field": 1, "invalid UTF-8": 1}, (FileInfo("__rejects/split-00000.jsonl", 33, A),)
    ),
    tokenless=TOKENLESS,
    files=(FileInfo("__token_counts", 7, B), FileInfo("__tokenizer", 20, A)),
    job_fingerprint=C,
)

UNSIGNED = (
    """{
  "format": "megatron",
  "version": 1,
  "tokenizer": {
    "fingerprint": "AAA",
    "vocab_size": 300
  },
  "settings": {
    "append": "<|endoftext|>",
    "prepend": null,
    "allowed_special": [
      "<a>"
    ],
    "text_field": "text"
  },
  "totals": {
    "shards": 2,
    "documents": 8,
    "text_bytes": 200,
    "tokens": 40,
    "rejects": 2
  },
  "rejects": {
    "by_reason": {
      "invalid UTF-8": 1,
      "no field": 1
    },
    "files": [
      {
        "name": "__rejects/split-00000.jsonl",
        "bytes": 33,
        "sha256": "AAA"
      }
    ]
  },
  "plan": {
    "fingerprint": "BBB",
    "files": [
      "opaque"
    ],
    "splits": [
      {
        "any": 1
      },
      2,
      3
    ]
  },
  "shards": [
    {
      "name": "shard-00000-of-00002",
      "split": 0,
      "slices": [
        {
          "file": "a.jsonl",
          "start": 0,
          "end": 90
        },
        {
          "file": "ü/b #1.jsonl.gz",
          "start": 0,
          "end": 70
        }
      ],
      "documents": 3,
      "text_bytes": 100,
      "tokens": 20,
      "rejects": 2,
      "files": [
        {
          "name": "shard-00000-of-00002.bin",
          "bytes": 40,
          "sha256": "CCC"
        },
        {
          "name": "shard-00000-of-00002.idx",
          "bytes": 90,
          "sha256": "DDD"
        }
      ]
    },
    {
      "name": "shard-00001-of-00002",
      "split": 2,
      "slices": [
        {
          "file": "a.jsonl",
          "start": 90,
          "end": 150
        }
      ],
      "documents": 4,
      "text_bytes": 100,
      "tokens": 20,
      "rejects": 0,
      "files": [
        {
          "name": "shard-00001-of-00002.bin",
          "bytes": 40,
          "sha256": "CCC"
        },
        {
          "name": "shard-00001-of-00002.idx",
          "bytes": 90,
          "sha256": "DDD"
        }
      ]
    }
  ],
  "splits_without_tokens": [
    {
      "split": 1,
      "slices": [
        {
          "file": "a.jsonl",
          "start": 90,
          "end": 90
        }
      ],
      "documents": 1,
      "text_bytes": 0,
      "rejects": 0
    }
  ],
  "files": [
    {
      "name": "__token_counts",
      "bytes": 7,
      "sha256": "BBB"
    },
    {
      "name": "__tokenizer",
      "bytes": 20,
      "sha256": "AAA"
    }
  ],
  "job_fingerprint": "CCC",
  "sha256": "SELF"
}
""".replace("AAA", A)
    .replace("BBB", B)
    .replace("CCC", C)
    .replace("DDD", D)
    .replace("SELF", "0" * 64)
    .encode()
)
# The checksum as docs/formats.md says how to compute it.
GOLDEN = UNSIGNED.replace(b"0" * 64, hashlib.sha256(UNSIGNED).hexdigest().encode())


def values() -> dict[str, Any]:
    """The JSON values of the manifest, without the checksum."""
    value: dict[str, Any] = json.loads(GOLDEN)
    del value["sha256"]
    return value


def test_the_file(tmp_path: Path) -> None:
    assert MANIFEST.to_bytes() == GOLDEN
    (tmp_path / "__manifest").write_bytes(GOLDEN)
    assert read_manifest(Storage(), str(tmp_path)) == MANIFEST
    assert Manifest.from_bytes(GOLDEN) == MANIFEST


def test_key_order_is_ours_not_the_callers() -> None:
    settings = dict(reversed(list(MANIFEST.settings.items())))
    assert list(settings) != list(MANIFEST.settings)
    reasons = dict(sorted(MANIFEST.rejects.by_reason.items()))
    assert list(reasons) != list(MANIFEST.rejects.by_reason)
    rejects = replace(MANIFEST.rejects, by_reason=reasons)
    assert replace(MANIFEST, settings=settings, rejects=rejects).to_bytes() == GOLDEN


def test_names_that_are_not_utf_8() -> None:
    name = b"a\xff\xc3.txt".decode("utf-8", "surrogateescape")
    odd = replace(MANIFEST, shards=(shard(0, (SourceSlice(name, 0, 1),), 2), SHARDS[1]))
    assert rb"a\udcff\udcc3.txt" in odd.to_bytes()
    assert Manifest.from_bytes(odd.to_bytes()) == odd


def test_no_shards_at_all() -> None:
    empty = replace(
        MANIFEST, shards=(), totals=Totals.of(()), tokenless=(), plan={"fingerprint": B}
    )
    assert empty.totals == Totals(0, 0, 0, 0, 0)
    assert Manifest.from_bytes(empty.to_bytes()) == empty


def test_a_number_that_json_does_not_have_is_not_written() -> None:
    odd = replace(MANIFEST, settings={**MANIFEST.settings, "text_field": float("nan")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        odd.to_bytes()


def test_a_missing_manifest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"__manifest"):
        read_manifest(Storage(), str(tmp_path))


# What is refused. A path is the keys from the top down to a value.


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += paths(inner, (*path, index))
    return found


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def changed(path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> bytes:
    value = values()
    change(at(value, path[:-1]), path[-1])
    return with_checksum(value, indent=None)


OPAQUE = ("plan", "files"), ("plan", "splits"), ("settings", "text_field")
PATHS = [path for path in paths(values()) if path and path[:2] not in OPAQUE]
assert len(PATHS) > 60
KEYS = [path for path in PATHS if isinstance(path[-1], str)]
OPTIONAL = ("rejects", "by_reason")


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_a_value_of_another_type_is_refused_by_its_key(path: tuple[Any, ...]) -> None:
    key = next(key for key in reversed(path) if isinstance(key, str))
    if path[:-1] == OPTIONAL:
        key = path[-2]  # errors name the object, not which of its keys
    for value in (True, 1.5, -1, 2**63, {"": []}, [{}]):  # type: ignore[var-annotated]

        def change(holder: Any, key: Any, value: Any = value) -> None:
            holder[key] = value

        with pytest.raises(DataError, match=rf"^here: .*{key}"):
            Manifest.from_bytes(changed(path, change), "here")


@pytest.mark.parametrize("path", KEYS, ids=str)
def test_a_missing_key_is_named(path: tuple[Any, ...]) -> None:
    def change(holder: Any, key: Any) -> None:
        del holder[key]

    data = changed(path, change)
    if path[:-1] == OPTIONAL or path in (("files",), ("job_fingerprint",)):
        assert Manifest.from_bytes(data) != MANIFEST
        return
    with pytest.raises(DataError, match=rf"^here: .*{path[-1]}"):
        Manifest.from_bytes(data, "here")


@pytest.mark.parametrize(
    "path",
    [
        (),
        ("tokenizer",),
        ("totals",),
        ("rejects",),
        ("rejects", "files", 0),
        ("shards", 1),
        ("shards", 0, "slices", 1),
        ("shards", 1, "files", 0),
    ],
    ids=str,
)
def test_an_unknown_key_is_named(path: tuple[Any, ...]) -> None:
    def change(holder: Any, key: Any) -> None:
        holder[key] = 1

    with pytest.raises(DataError, match=r"^here: Object contains unknown field `host`"):
        Manifest.from_bytes(changed((*path, "host"), change), "here")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "tape", "format must be one of megatron, .*got .tape."),
        (("version",), 2, "version must be 1 for this bpe-beam, got 2"),
        (("tokenizer", "vocab_size"), 0, r"`int` >= 1 - at `\$\.tokenizer\.vocab_size`"),
        (("tokenizer", "vocab_size"), 2**31 + 1, r"`int` <= 2147483648 - at `\$\.tokenizer"),
        (("tokenizer", "fingerprint"), "A" * 64, r"\[0-9a-f\].* - at `\$\.tokenizer\.fingerprint`"),
        (("plan", "fingerprint"), "a" * 63, r"\[0-9a-f\].* - at `\$\.plan\.fingerprint`"),
        (("shards", 0, "files", 1, "sha256"), "x", r"`\$\.shards\[0\]\.files\[1\]\.sha256`"),
        (
            ("shards", 1, "name"),
            "../../etc/passwd",
            r"shards\[1\] must have .*, got .\.\./\.\./etc",
        ),
        (("shards", 1, "name"), "shard-00000-of-00002", r"must have .* shard-00001-of-00002, "),
        (
            ("shards", 0, "files", 0, "name"),
            "/etc/passwd",
            r"shards\[0\] must .*, got .*/etc/passwd",
        ),
        (("shards", 0, "files"), [], r"shards\[0\] must have .*, got .shard-00000-of-00002.$"),
        (("shards", 0, "slices", 0, "end"), -1, r">= 0 - at `\$\.shards\[0\]\.slices\[0\]\.end`"),
        (
            ("shards", 1, "slices", 0, "end"),
            89,
            r"end must be at least start, 90, got 89 - at `\$\.shards\[1\]\.slices\[0\]`",
        ),
        (("shards", 1, "split"), 0, "split 0 of the plan appears twice"),
        (("shards", 1, "split"), 3, "split 2 of the plan has no shard"),
        (("shards", 0, "split"), 7, "shards must be in the order of their splits"),
        (("splits_without_tokens",), [], "split 1 of the plan has no shard"),
        (("plan", "splits"), [1, 2, 3, 4], "the plan has 4 splits, and the manifest has 3"),
        (("rejects", "files", 0, "name"), "__rejects/..", r"files\[0\]\.name must be __rejects"),
        (
            ("rejects", "files", 0, "name"),
            "__rejects/a/b",
            r"files\[0\]\.name must be __rejects/NAME",
        ),
        (("rejects", "files", 0, "name"), "__rejects/", r"files\[0\]\.name must be __rejects"),
        (("rejects", "files", 0, "name"), "other/a", r"files\[0\]\.name must be __rejects"),
        (("settings", "allowed_special"), "<a>", r"'<a>' - at `\$\.settings\.allowed_special`"),
        (("settings", "allowed_special"), [1], r"at `\$\.settings\.allowed_special\[0\]`"),
        (("settings", "append"), 3, r"`str \| null`, got `int` - at `\$\.settings\.append`"),
        (("shards", 0, "tokens"), "9", r"`int`, got `str` - at `\$\.shards\[0\]\.tokens`"),
    ],
)
def test_a_value_out_of_range(path: tuple[Any, ...], value: Any, message: str) -> None:
    def change(holder: Any, key: Any) -> None:
        holder[key] = value

    with pytest.raises(DataError, match=message):
        Manifest.from_bytes(changed(path, change))


@pytest.mark.parametrize("order", ["__rejects/a __rejects/a", "__rejects/b __rejects/a"])
def test_reject_files_stand_in_order_and_once(order: str) -> None:
    files = tuple(FileInfo(name, 1, A) for name in order.split())
    with pytest.raises(DataError, match=r"rejects\.files\[1\]\.name must be .* got .__rejects/a."):
        rejects = replace(MANIFEST.rejects, files=files)
        Manifest.from_bytes(replace(MANIFEST, rejects=rejects).to_bytes())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cannot be read as JSON"),
        (b"\xff\xfe\xfd", "cannot be read as JSON"),
        (b"{", "cannot be read as JSON"),
        (GOLDEN[:-3], "cannot be read as JSON"),
        (GOLDEN + b"{}", "cannot be read as JSON"),
        (b"[" * 100_000, "cannot be read as JSON"),
        (b'{"version": ' + b"1" * 5_000 + b"}", "cannot be read as JSON"),
        (b'{"version": NaN}', "cannot be read as JSON: NaN is not a JSON number"),
        (
            b'{"version": 1, "version": 1}',
            "cannot be read as JSON: an object repeats .*version",
        ),
        (b"null", "must be a JSON object, got null"),
        (b"[]", r"must be a JSON object, got \[\]"),
        (b"{}", "the key 'sha256' is missing"),
        (GOLDEN.replace(b'"documents": 8', b'"documents": 9'), "the checksum does not match"),
        (GOLDEN.replace(b"  ", b" "), "the checksum does not match"),
        (json.dumps(values()).encode(), "the key 'sha256' is missing"),
    ],
    ids=range(15),
)
def test_what_is_no_manifest(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=f"^here: {message}"):
        Manifest.from_bytes(data, "here")


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": [], "b": {}, "c": [[{}]], "d": [1e16, 1e-5, -0.0, 10**30, True, None]},
        {'é\x7f\x1f\u2028\\"/\b': "😀"},
        ["\udc80x", "\ud83d", {"\udfff": 0}],
    ],
)
def test_json_has_the_bytes_of_python(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    assert json_bytes(value) == f"{text}\n".encode("utf-8", "backslashreplace")

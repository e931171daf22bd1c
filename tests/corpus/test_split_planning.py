"""Plans: the same for any order and place of the files, and splits that cover them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard
from planned_corpora import corpus

from bpe_beam.corpus.plan import InputFile, Slice, Split
from bpe_beam.corpus.split_planning import make_plan, plan_of_files
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage, StoredFile

pytestmark = pytest.mark.quick

STORAGE = Storage()


def test_compression_is_told_by_content(tmp_path: Path) -> None:
    skippable = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"
    for name, data in {
        "plain.gz": b"not compressed\n",
        "zipped.txt": gzip.compress(b"x"),
        "skip": skippable + zstandard.compress(b"x"),
        "short": b"\x1f",
        "bz.txt": b"BZh is how this text begins",
    }.items():
        (tmp_path / name).write_bytes(data)
    plan = make_plan(STORAGE, [f"{tmp_path}/*"])
    assert {file.name: file.compression for file in plan.files} == {
        "plain.gz": "none",
        "zipped.txt": "gzip",
        "skip": "zstd",
        "short": "none",
        "bz.txt": "none",
    }


@pytest.mark.parametrize(
    ("head", "input_format", "message"),
    [
        (b"PK\x03\x04", "auto", "is a ZIP archive"),
        (b"PAR1", "text", "is parquet, not text; leave input_format out"),
        (b"ARROW1\0\0", "jsonl", "is arrow, not jsonl"),
        (b"\x1f\x8b\x08", "parquet", "is gzip, not parquet"),
    ],
)
def test_what_cannot_be_read_is_refused(
    tmp_path: Path, head: bytes, input_format: str, message: str
) -> None:
    (tmp_path / "a.txt").write_bytes(head + b"more")
    with pytest.raises(UsageError, match=rf"a\.txt' {message}"):
        make_plan(STORAGE, [str(tmp_path / "a.txt")], input_format=input_format)


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("a", b"PAR1", ("parquet", "none")),
        ("a.txt", b"ARROW1\0\0", ("arrow", "none")),
        ("a.txt", b"WARC/1.0\r\n", ("warc", "none")),
        ("a.warc.wet.gz", b"\x1f\x8b\x08", ("warc", "gzip")),
        ("a.TSV", b"x", ("tsv", "none")),
        ("a.csv.xz", b"\xfd7zXZ\x00", ("csv", "xz")),
        ("a.tgz", b"\x1f\x8b\x08", ("tar", "gzip")),
        ("a.json.bz2", b"BZh91AY&SY", ("jsonl", "bz2")),
        ("a.bz2", b"BZhello", ("text", "none")),
        ("a.parquet", b"", ("parquet", "none")),
        ("jsonl", b"{", ("text", "none")),
    ],
)
def test_what_a_file_is(tmp_path: Path, name: str, head: bytes, kind: tuple[str, str]) -> None:
    (tmp_path / name).write_bytes(head)
    (file,) = make_plan(STORAGE, [str(tmp_path / name)]).files
    assert (file.format, file.compression) == kind


def test_formats_by_name(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.JSONL", "a.ndjson.gz", "a.json.zstd", "a.json.gz.txt", "jsonl", "a"):
        (tmp_path / name).write_bytes(b"")
    plan = make_plan(STORAGE, [f"{tmp_path}/*"])
    assert {file.name for file in plan.files if file.format == "jsonl"} == {
        "a.jsonl",
        "a.JSONL",
        "a.ndjson.gz",
        "a.json.zstd",
    }
    for forced in ("text", "jsonl"):
        plan = make_plan(STORAGE, [f"{tmp_path}/*"], input_format=forced)
        assert {file.format for file in plan.files} == {forced}


def test_lists_of_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus(tmp_path)
    (tmp_path / "list").write_bytes(
        f"\ufeff# a comment\r\n{tmp_path}/b.txt\r\n\n   \na/*.jsonl\n{tmp_path}/b.txt".encode()
    )
    monkeypatch.chdir(tmp_path)
    plan = make_plan(STORAGE, ["@list", "./b.txt", f"@{tmp_path}/list"])
    assert [file.name for file in plan.files] == ["a/1.jsonl", "b.txt"]
    assert plan.duplicates == ("a/1.jsonl", "b.txt")
    assert make_plan(STORAGE, ["a/1.jsonl", "b.txt"]).duplicates == ()
    assert "duplicates" not in plan.to_json()
    (tmp_path / "@odd").write_bytes(b"x")
    assert make_plan(STORAGE, ["./@odd"]).files[0].name == "@odd"
    with pytest.raises(UsageError, match=r"@none.*no list of inputs at 'none'"):
        make_plan(STORAGE, ["@none"])
    with pytest.raises(UsageError, match="@a: there is no list"):
        make_plan(STORAGE, ["@a"])
    (tmp_path / "latin").write_bytes(b"x\n\xe9\n")
    with pytest.raises(UsageError, match="not UTF-8 at byte 2"):
        make_plan(STORAGE, ["@latin"])
    (tmp_path / "data").write_text("# fine\n" + '{"text": "' + "a" * 9000 + '"}\n')
    with pytest.raises(UsageError, match=r"^@data: line 2 begins with .* and is not a file name"):
        make_plan(STORAGE, ["@data"])
    (tmp_path / "nothing").write_bytes(b"# nothing\n")
    with pytest.raises(UsageError, match="no input files: nothing is listed in @nothing"):
        make_plan(STORAGE, ["@nothing"])


def test_inputs_that_match_nothing_are_named(tmp_path: Path) -> None:
    corpus(tmp_path)
    for missing in (f"{tmp_path}/none", f"{tmp_path}/*.none"):
        with pytest.raises(UsageError) as caught:
            make_plan(STORAGE, [str(tmp_path / "b.txt"), missing])
        assert f"input {missing!r}: no file matches" in str(caught.value)
    with pytest.raises(UsageError, match="not a regular file"):
        make_plan(STORAGE, ["/dev/null"])
    with pytest.raises(UsageError, match="no input files"):
        make_plan(STORAGE, [])


def test_settings_are_checked(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    for options, message in (
        ({"range_bytes": 0}, "range_bytes must be at least 1, got 0"),
        ({"range_bytes": -5}, "range_bytes must be at least 1, got -5"),
        ({"range_bytes": 1}, "range_bytes must be at least 3, got 1, .* over 1000000 slices"),
    ):
        with pytest.raises(UsageError, match=message):
            make_plan(STORAGE, [str(tmp_path / "a")], **options)


def test_several_protocols_and_hosts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"local")
    STORAGE.write_bytes("memory://plan-test/x/b.txt", b"memory")
    STORAGE.write_bytes("memory://plan-test/y/c.txt", b"memory")
    plan = make_plan(STORAGE, ["memory://plan-test/*/*.txt"])
    assert [file.name for file in plan.files] == ["x/b.txt", "y/c.txt"]
    assert plan.root == "memory://plan-test"
    both = [str(tmp_path / "a.txt"), "memory://plan-test/x/b.txt"]
    plan = make_plan(STORAGE, both)
    assert [file.name for file in plan.files] == both
    assert [STORAGE.read_bytes(plan.url(i)) for i in range(2)] == [b"local", b"memory"]


def test_web_queries_stay_out_of_names() -> None:
    from bpe_beam.corpus.listing import root_and_names

    root, names = root_and_names(
        ["https://me:pw@host/a/x.txt?sig=1", "https://me:pw@host/a/b/y.txt?sig=1"]
    )
    assert list(names.values()) == ["x.txt", "b/y.txt"]
    assert STORAGE.join(root, "b/y.txt") == "https://me:pw@host/a/b/y.txt?sig=1"
    with pytest.raises(UsageError, match="different queries"):
        root_and_names(["https://host/x?sig=1", "https://host/x?sig=2"])
    for secret in ("https://me:hunter2@host/x", "https://host/x?hunter2"):
        with pytest.raises(UsageError, match="password or a query") as caught:
            root_and_names([secret, "/local"])
        assert "hunter2" not in str(caught.value)
    with pytest.raises(UsageError, match="password or a query"):
        root_and_names(["https://me:pw@host/x", "https://other/x"])
    assert root_and_names(["/a"]) == ("/", {"/a": "a"})
    assert root_and_names(["s3://one/a", "s3://two/a"])[0] == "s3://"


def test_many_tiny_files_make_few_splits() -> None:
    files = tuple(InputFile(str(i), 1, "text", "none") for i in range(25_000))
    plan = plan_of_files("", files, document_separator="\n", range_bytes=1 << 20)
    assert [len(split.slices) for split in plan.splits] == [10_000, 10_000, 5_000]


def test_the_default_range(tmp_path: Path) -> None:
    sparse = tmp_path / "sparse.txt"
    for size, expected in (
        (40 << 20, 16 << 20),
        (32 << 30, (32 << 30) // 1000),
        (2 << 40, 1 << 30),
    ):
        with sparse.open("wb") as stream:
            stream.truncate(size)
        (split, *_) = make_plan(STORAGE, [str(sparse)], input_format="text").splits
        pieces = -(-size // expected)
        assert split == Split(0, (Slice(0, 0, size // pieces),))


def test_files_that_a_place_cannot_hold_are_refused(tmp_path: Path) -> None:
    class Huge(Storage, frozen=True):
        def expand(self, pattern: str, on_link: object = None) -> list[StoredFile]:
            return [StoredFile("/x", (1 << 44) + 1)]

    with pytest.raises(UsageError, match="a file has at most 17592186044416"):
        make_plan(Huge(), ["x"])


def test_an_empty_file_is_a_member(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    plan = make_plan(STORAGE, [str(tmp_path / "empty.txt")])
    assert plan.splits == (Split(0, (Slice(0, 0, 0),)),)
    assert plan.size == 0

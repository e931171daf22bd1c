"""Reading, on whatever Hypothesis thinks of: every cut, any JSON, any damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from corpus_reading import (
    BOM,
    STORAGE,
    check_json,
    cut,
    expected_json,
    expected_text,
    read,
    read_file,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from some_of import SomeOf

from bpe_beam.corpus.plan import InputFile
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.split_planning import can_be_cut, make_plan, plan_of_files

# a fixture's folder serves all examples of a test; each writes its file anew
property_test = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


SEPARATORS = [
    "\n",
    "\n\n",
    "ab",
    "aa",
    "aba",
    "aabaa",
    "<|endoftext|>",
    "é",
    "\r\n",
    "\ufeff",
    "\ufeff\ufeff",
]


def pieces_of(separator: str) -> st.SearchStrategy[bytes]:
    """Bytes in which the separator, parts of it, and broken UTF-8 are frequent."""
    raw = separator.encode()
    parts = [raw, raw, raw[:1], raw[:-1], raw[1:], b"a", b"b", b"\n", b"\r", b"\r\n", b"\xff"]
    parts += ["é".encode(), b"\xed\xa0\x80", "\U0001f600".encode()]
    return st.lists(st.sampled_from(parts), max_size=10).map(b"".join)


@pytest.mark.parametrize("separator", SEPARATORS)
def test_every_cut_gives_the_documents_of_the_whole_file(
    tmp_path: Path, separator: str, some_of: SomeOf
) -> None:
    path = tmp_path / "x.txt"
    read_settings = ReadSettings(document_separator=separator)

    @settings(max_examples=len(some_of(range(60))), deadline=None)
    @given(st.sampled_from([b"", BOM]), pieces_of(separator), st.sampled_from([1, 7, 1 << 20]))
    def check(start: bytes, pieces: bytes, batch: int) -> None:
        content = start + pieces
        path.write_bytes(content)
        raw = separator.encode()
        if separator == "\n\n" and content.partition(b"\n")[0].endswith(b"\r") and b"\n" in content:
            raw = b"\r\n\r\n"
        good, bad = expected_text(content, raw)
        plan = make_plan(STORAGE, [str(path)], document_separator=separator)
        for size in range(1, len(content) + 2):
            found = read(plan, cut(plan, range(size, len(content), size)), read_settings, batch)
            assert found.documents == good
            assert [offset for offset, _ in found.bad] == bad
            assert found.ids == [f"x.txt:{offset}" for offset, _ in good]

    check()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(
    st.sampled_from(["text", "id", "x", "tëxt", 'q"']), VALUES | st.text(max_size=40), max_size=4
)


FIRST = b'{"text": "a file that begins with an array would be refused as no JSON Lines"}'


@st.composite
def json_lines(draw: st.DrawFn) -> bytes:
    value = draw(OBJECTS | VALUES)
    separators = draw(st.sampled_from([(",", ":"), (" ,\t", " : ")]))
    dumped = json.dumps(value, ensure_ascii=draw(st.booleans()), separators=separators)
    return dumped.encode("utf-8", "surrogatepass").replace(b"\n", b" ")


@property_test
@given(line=json_lines())
def test_any_value_is_read_as_python_reads_it(tmp_path: Path, line: bytes) -> None:
    check_json(tmp_path / "x", [FIRST, line, line])


NESTED = st.recursive(
    st.integers() | st.sampled_from(["", "x", "é"]),
    lambda inner: st.lists(st.tuples(st.sampled_from("abc"), inner), max_size=4),
    max_leaves=12,
)


def with_equal_keys(value: object) -> str:
    """Pairs as an object, equal keys and all."""
    if not isinstance(value, list):
        return json.dumps(value)
    return "{" + ", ".join(f'"{key}": {with_equal_keys(inner)}' for key, inner in value) + "}"


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(".".join)


@property_test
@given(value=NESTED, text=PATHS, name=PATHS, source=PATHS)
def test_any_path_is_followed_as_python_follows_it(
    tmp_path: Path, value: object, text: str, name: str, source: str
) -> None:
    line = with_equal_keys(value).encode()
    fields = {"text_field": text, "id_field": name, "source_field": source}
    check_json(tmp_path / "x", [line, line[1:], line[:-1], line], **fields)


@property_test
@given(line=json_lines(), data=st.data())
def test_any_damage_is_judged_as_python_judges_it(
    tmp_path: Path, line: bytes, data: st.DataObject
) -> None:
    damaged = [FIRST, line]
    for _ in range(3):
        at = data.draw(st.integers(0, len(line)))
        length = data.draw(st.integers(0, 3))
        junk = data.draw(
            st.binary(max_size=2)
            | st.sampled_from(
                [
                    b'"',
                    b"\\",
                    b"{",
                    b"}",
                    b"[",
                    b"]",
                    b",",
                    b":",
                    b"\\u",
                    b"\\ud800",
                    b"0",
                    b"-",
                    b"e",
                ]
            )
        )
        damaged.append((line[:at] + junk + line[at + length :]).replace(b"\n", b" "))
    check_json(tmp_path / "x", damaged)


@property_test
@given(data=st.data())
def test_garbage_spliced_in_costs_no_good_record(tmp_path: Path, data: st.DataObject) -> None:
    good = [b'{"id": %d, "text": "record %d \xc3\xa9"}' % (i, i) for i in range(20)]
    garbage = [
        line
        for line in data.draw(st.lists(st.binary(max_size=80), max_size=8))
        for line in line.split(b"\n")
        if not isinstance(expected_json(line), tuple) and expected_json(line) is not None
    ]
    lines = good.copy()
    for line in garbage:
        # not at the front, where it could look like the beginning of gzip
        lines.insert(data.draw(st.integers(1, len(lines))), line)
    path = tmp_path / "x"
    content = b"\n".join(lines) + b"\n"
    path.write_bytes(content)
    cuts = tuple(sorted(data.draw(st.sets(st.integers(1, len(content) - 1), max_size=4))))
    batch = data.draw(st.sampled_from([1, 64, 1 << 20]))
    found = read_file(path, cuts=cuts, batch=batch, input_format="jsonl")
    assert found.ids == [str(i) for i in range(20)]
    assert sorted(r.data for r in found.rejects) == sorted(garbage)
    for reject in found.rejects:
        assert content[reject.offset :].startswith(reject.data + b"\n")
        assert reject.line in (None, content[: reject.offset].count(b"\n") + 1)


FILES = st.lists(
    st.builds(
        InputFile,
        name=st.just("x"),
        size=st.integers(0, 500),
        format=st.sampled_from(["text", "jsonl"]),
        compression=st.sampled_from(["none", "none", "gzip", "zstd"]),
    ),
    min_size=1,
    max_size=20,
)


@given(FILES, st.integers(1, 300), st.sampled_from(["\n", "file"]))
def test_splits_cover_the_files_once_and_in_order(
    files: list[InputFile], range_bytes: int, separator: str
) -> None:
    plan = plan_of_files("", tuple(files), document_separator=separator, range_bytes=range_bytes)
    splits = plan.splits
    assert [split.index for split in splits] == list(range(len(splits)))
    pieces = [piece for split in splits for piece in split.slices]
    for index, file in enumerate(files):
        mine = [piece for piece in pieces if piece.file == index]
        assert [p.start for p in mine] == [0, *(p.end for p in mine[:-1])]
        assert mine[-1].end == file.size
        if not can_be_cut(file, separator):
            assert len(mine) == 1
        else:
            lengths = [p.end - p.start for p in mine]
            assert max(lengths) - min(lengths) <= 1
            assert max(lengths) <= range_bytes
    assert pieces == sorted(pieces, key=lambda p: (p.file, p.start))
    for split, after in zip(splits, [*splits[1:], None], strict=True):
        assert split.slices
        assert split.size <= range_bytes or len(split.slices) == 1
        if after:  # it is full: the next piece would not fit
            first = after.slices[0]
            assert split.size + first.end - first.start > range_bytes

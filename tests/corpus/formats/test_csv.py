"""CSV and TSV: as Python's csv reads them, each bad record told, any cut proven or read as one."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from corpus_reading import BOM, Found, read_file
from guessed_cuts import plan_of, read_cut
from some_of import SomeOf

from bpe_beam.corpus.formats import csv as csv_format
from bpe_beam.corpus.reading import records
from bpe_beam.errors import DataError

pytestmark = pytest.mark.quick

VALUES = [
    "",
    "a",
    "b c",
    "é€😀",
    'quo"te',
    '"',
    '""',
    "x,y",
    "x\ty",
    "two\nlines",
    "\r\n",
    "\n\n",
    " ",
]


def made(rows: list[list[str]], delimiter: str = ",", **options: Any) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, **options).writerows(rows)
    return out.getvalue().encode()


def rows_of(drawn: random.Random, count: int) -> list[list[str]]:
    return [[f"{i}", drawn.choice(VALUES), drawn.choice(VALUES)] for i in range(count)]


def read(path: Path, **options: Any) -> Found:
    return read_cut(plan_of(path, path.suffix[1:]), **options)[0]


@pytest.mark.parametrize("kind", ["csv", "tsv"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_what_python_writes(tmp_path: Path, kind: str, ending: str, quoting: Any) -> None:
    rows = rows_of(random.Random(1), 300)
    delimiter = "," if kind == "csv" else "\t"
    options = {"lineterminator": ending, "quoting": quoting}
    content = made([["id", "text", "from"], *rows], delimiter, **options)
    path = tmp_path / f"x.{kind}"
    for start, end in ((b"", None), (BOM, -len(ending)), (b"\n\r\n", None)):
        path.write_bytes(start + content[:end])
        for batch in (1, 300, 1 << 20):
            found = read_file(path, batch=batch, source_field="from")
            assert found.texts == [row[1] for row in rows]
            assert found.ids == [row[0] for row in rows]
            assert found.sources == [row[2] or "other" for row in rows]
            assert not found.rejects
    places = [place for place, _ in found.documents]
    begin = f"{ending}{rows[7][0]}{delimiter}" if quoting == csv.QUOTE_MINIMAL else f'{ending}"7"'
    assert places[7] == path.read_bytes().index(begin.encode()) + len(ending)


def test_columns_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'n,"a.b",text,"te""xt",text\n1,2,3,4,5\n,,,,\n')
    for field, texts in (("text", ["5", ""]), (r"a\.b", ["2", ""]), ('te"xt', ["4", ""])):
        found = read(path, text_field=field, id_field="n")
        assert (found.texts, found.ids) == (texts, ["1", None])
    assert read(path, id_field="no").ids == [None, None]
    assert set(read(path, source_field="no").sources) == {"other"}
    assert set(read(path).sources) == {"x.csv"}
    for field in ("no", "a.b"):
        with pytest.raises(
            DataError, match=r"names no column in x\.csv; it has 'n', 'a.b', 'text'"
        ):
            read(path, text_field=field)
    for header in (b'"text', b'"text"x,y\n'):
        path.write_bytes(header)
        with pytest.raises(DataError, match=r"x\.csv: its first record, which should name"):
            read(path)
    for nothing in (b"", b"\n", b"\r\n\n", BOM, b"text", b"text\n", b"text\n\n\r\n"):
        path.write_bytes(nothing)
        found = read(path)
        assert (found.texts, found.rejects) == ([], [])


def test_rejects_with_place_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    bad = [
        (b"1,b", "wrong number of columns", "2, the header has 3"),
        (b"1,b,c,d", "wrong number of columns", "4, the header has 3"),
        (b'1,"b\nb",c,d', "wrong number of columns", "4, the header has 3"),
        (b"1,\xff,c", "invalid UTF-8", "at byte 2 of the record"),
        (b"\xed\xa0\x80,b,c", "invalid UTF-8", "at byte 0 of the record"),
        (b"1,b,\0", "NUL byte", "at byte 4 of the record"),
        (b'1,"b"x,c', "text after a closing quote", "at byte 5 of the record"),
        (b'1,"b" ,c', "text after a closing quote", "at byte 5 of the record"),
        (b'1,b,"c', "text after a closing quote", None),
        (b'1,b,"c', "unclosed quote", "at byte 4 of the record"),
    ]
    lines = [b"id,text,more"]
    for i, (line, _, _) in enumerate(bad):
        lines += [b'7,"good ""%d""",m' % i, line]
    lines += [b"8,last,m", b""]
    content = b"\r\n".join(lines)
    path.write_bytes(content)
    for batch in (1, 1 << 20):
        found = read(path, batch=batch)
        assert found.texts == [*(f'good "{i}"' for i in range(len(bad))), "last"]
        assert [(r.reason, r.data.rstrip(b"\r")) for r in found.rejects] == [
            (reason, line) for line, reason, _ in bad
        ]
        for reject, (_, _, detail) in zip(found.rejects, bad, strict=True):
            assert detail in (None, reject.detail)
            assert content[reject.offset :].startswith(reject.data)
            assert content[reject.offset - 2 : reject.offset] == b"\r\n"  # type: ignore[operator]


def is_record(line: bytes) -> bool:
    """Whether it is a record of two columns."""
    try:
        (row,) = csv.reader([line.decode()], strict=True)
    except (csv.Error, UnicodeDecodeError):
        return False
    return len(row) == 2 and b"\0" not in line


def test_garbage_spliced_in_costs_no_good_record(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for seed in range(150):
        drawn = random.Random(seed)
        good = [made([[f"{i}", f'te"xt {i} é']]).rstrip() for i in range(12)]
        lines, garbage = [], []
        for line in good:
            lines.append(line)
            alphabet = b'ab",,\xff\0' if drawn.random() < 0.7 else bytes(range(256))
            junk = bytes(drawn.choices(alphabet, k=drawn.randrange(12)))
            junk = junk.replace(b"\n", b"").replace(b"\r", b"")
            # two pieces of it side by side could make a record; and none must be one alone
            if junk and drawn.random() < 0.5 and not is_record(junk):
                garbage.append(junk)
                lines.append(junk)
        path.write_bytes(b"\n".join([b"id,text", *lines, b""]))
        found = read(path, batch=drawn.choice([1, 50, 1 << 20]))
        assert found.ids == [f"{i}" for i in range(12)], seed
        assert sorted(r.data for r in found.rejects) == sorted(garbage)


def test_any_cut_is_proven_or_given_up(tmp_path: Path, some_of: SomeOf) -> None:
    path = tmp_path / "x.csv"
    proven = apart = 0
    for seed in some_of(range(25), every=5):
        drawn = random.Random(seed)
        content = made([["text", "id", "x"], *rows_of(drawn, 12)], lineterminator="\n")
        if seed % 3 == 0:
            at = drawn.randrange(20, len(content))
            content = content[:at] + drawn.choice([b'"', b"\xff", b"\n", b'\n"\n']) + content[at:]
        if seed % 4 == 0:
            content = content.rstrip(b"\n")
        path.write_bytes(content)
        plan = plan_of(path, "csv")
        whole, _ = read_cut(plan)
        tried = [[at] for at in range(1, len(content), 3)]
        tried += [sorted(drawn.sample(range(1, len(content)), 5)) for _ in range(10)]
        for cuts in tried:
            found, meet = read_cut(plan, cuts, batch=drawn.choice([1, 1 << 20]))
            proven, apart = proven + meet, apart + (not meet)
            if meet:
                assert found.documents == whole.documents
                assert (found.ids, found.rejects) == (whole.ids, whole.rejects)
    assert proven > 5 * apart > 0


def test_files_without_newlines_in_quotes_always_meet(tmp_path: Path, some_of: SomeOf) -> None:
    path = tmp_path / "x.csv"
    for end in (b"", b"\n", b"\r\n", b"\n\n"):
        path.write_bytes(BOM + b'"te\nxt",id\r\n\r\na,1\nb"b,2\n"c",3\n\n\n"d",""' + end)
        plan = plan_of(path, "csv")
        whole, _ = read_cut(plan, text_field="te\nxt")
        assert whole.ids == ["1", "2", "3", None]
        for cuts in some_of([*itertools.combinations(range(1, plan.size), 2)], every=5):
            found, meet = read_cut(plan, cuts, text_field="te\nxt")
            assert meet
            assert (found.documents, found.rejects) == (whole.documents, whole.rejects)


def test_compressed_and_truncated_anywhere(tmp_path: Path) -> None:
    rows = rows_of(random.Random(4), 30)
    content = made([["id", "text", "more"], *rows])
    for name, pack in (("x.csv", bytes), ("x.csv.gz", gzip.compress), ("x.csv.bz2", bz2.compress)):
        packed = pack(content)
        path = tmp_path / name
        path.write_bytes(packed)
        whole = read_file(path)
        assert (whole.texts, whole.rejects) == ([row[1] for row in rows], [])
        if name.endswith("bz2"):
            continue  # all of it is one block
        for size in range(40 if name.endswith("gz") else len("id,text,more\r\n"), len(packed), 3):
            path.write_bytes(packed[:size])
            found = read_cut(plan_of(path, "csv"))[0]
            got = len(found.texts)
            assert found.texts[:-1] == whole.texts[: max(0, got - 1)]
            if name.endswith("gz"):
                assert [r.reason for r in found.rejects] == ["broken compressed stream"]
                assert found.texts == whole.texts[:got]


def test_records_and_headers_that_are_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", 100)
    monkeypatch.setattr(csv_format, "MAX_HEADER_BYTES", 70_000)
    path = tmp_path / "x.csv"
    long = b"x" * 300_000
    path.write_bytes(
        b'text,id\na,1\n%s,2\nb,3\n"%s",4\nc,5\n"open\nd,6\n%s,7\ne,8\n' % (long, long, long)
    )
    for batch in (1, 100_000, 1 << 20):
        found = read(path, batch=batch)
        assert found.texts == ["a", "b", "c", "d", "e"]
        reasons = [r.reason for r in found.rejects]
        assert reasons[:2] == ["record too long"] * 2
        assert reasons[3] == "record too long"
        assert [r.bytes_total for r in found.rejects] == [300_002, 300_004, 5, 300_002]
        assert all(r.data and long.startswith(r.data[1:100]) for r in found.rejects[:2])
    path.write_bytes(b"%s,text\n" % long)
    with pytest.raises(DataError, match="or more than 70000 bytes"):
        read(path)

"""Garbage spliced into valid files: each good record comes once, each bad one is a reject once."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import zstandard
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bpe_beam.corpus.boundaries import files_with_gaps
from bpe_beam.corpus.file_types import other_encoding
from bpe_beam.corpus.plan import Plan, Slice, Split
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.read_split import read_split
from bpe_beam.corpus.rejects import Reject
from bpe_beam.corpus.slices import Boundaries
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.storage import Storage

STORAGE = Storage()

# Never a line break within, never valid by chance: text that is no UTF-8, JSON that is none.
NOT_UTF8 = st.binary(max_size=60).map(lambda data: b"\xff\xff" + data.replace(b"\n", b"\xfe"))
NOT_JSON = st.one_of(
    NOT_UTF8,
    st.sampled_from(
        [
            b'{"text": "cut off',
            b'{"text": 1}',
            b'{"no": "text"}',
            b'["text"]',
            b'{"text": "\\ud800"}',
            b'{"text": "a"} more',
            b"\x00",
            b"null",
        ]
    ),
)
PACK: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": zstandard.compress}


def pack(lines: list[bytes], packing: str, members: int) -> bytes:
    """The lines as a file's bytes; packed in members cut anywhere."""
    data = b"".join(line + b"\n" for line in lines)
    if packing == "plain":
        return data
    size = -(-len(data) // members) or 1
    pieces = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
    return b"".join(map(PACK[packing], pieces))


def read_all(plan: Plan) -> tuple[list[str], list[Reject]]:
    """As a job does: again, as one, if the slices do not meet."""
    texts: list[str] = []
    rejects: list[Reject] = []
    seen: list[Boundaries] = []
    for split in plan.splits:
        for batch in read_split(
            STORAGE, plan, split, ReadSettings(), rejects.append, seen.append, batch_bytes=300
        ):
            texts += batch.column("text").to_pylist()
    wrong = files_with_gaps(plan, seen)
    return read_all(plan.reading_as_one(wrong)) if wrong else (texts, rejects)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(st.tuples(st.booleans(), st.text(max_size=40), NOT_JSON, NOT_UTF8), max_size=40),
    json_lines=st.booleans(),
    packing=st.sampled_from(["plain", "gz", "zst"]),
    members=st.integers(1, 9),
    cuts=st.lists(st.floats(0, 1), max_size=6),
)
def test_each_record_once(
    rows: list[tuple[bool, str, bytes, bytes]],
    json_lines: bool,
    packing: str,
    members: int,
    cuts: list[float],
    tmp_path_factory: object,
) -> None:
    good, bad, lines = [], [], []
    if json_lines:  # a file that begins with an array is refused as a whole
        rows = [(True, "", b"", b""), *rows]
    for is_good, text, not_json, not_utf8 in rows:
        if is_good:
            text = text.replace("\n", " ").replace("\r", " ")
            lines.append(json.dumps({"text": text}).encode() if json_lines else text.encode())
            good.append(text)
        else:
            lines.append(not_json if json_lines else not_utf8)
            bad.append(lines[-1])
    if not json_lines and lines and not lines[0].startswith(b"\xff"):
        lines[0] = lines[0].replace(b"\xef\xbb\xbf", b"")  # a byte order mark is no text
        good[0] = good[0].replace("\ufeff", "") if good else ""
    # A file that looks like UTF-16 is refused as a whole.
    assume(other_encoding(b"".join(line + b"\n" for line in lines)) is None)
    name = "x.jsonl" if json_lines else "x.txt"
    url = f"memory://spliced/{name}" + ("" if packing == "plain" else f".{packing}")
    STORAGE.write_bytes(url, pack(lines, packing, members))
    plan = make_plan(STORAGE, [url], input_format="jsonl" if json_lines else "text")
    bounds = sorted({0, plan.size, *(int(plan.size * cut) for cut in cuts)})
    pieces = [Slice(0, *each) for each in itertools.pairwise(bounds)]
    plan = Plan(plan.root, plan.files, tuple(Split(i, (p,)) for i, p in enumerate(pieces)))
    texts, rejects = read_all(plan)
    assert texts == good
    assert [reject.data.removesuffix(b"\r") for reject in rejects] == [
        line.removesuffix(b"\r") for line in bad
    ]
    for reject in rejects:
        row = reject.to_json()
        assert base64.b64decode(str(row["bytes"])) == reject.data
        if reject.unit is None and packing == "plain":
            data = Path(url).name and STORAGE.read_bytes(url)
            assert data[reject.offset :].startswith(reject.data)

"""JSON Lines: each line is read as Python's `json` reads it, or is a reject with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from corpus_reading import BOM, check_json, expected_json, read_file

from bpe_beam import _native
from bpe_beam.corpus.read_settings import MAX_PATH_DEPTH

pytestmark = pytest.mark.quick

LINES = [
    (b'{"text": "a"}', (None, "a")),
    (b' \t{ "text" : "a" , "id":"7" }\r', ("7", "a")),
    (b'{"text":""}', (None, "")),
    (b'{"id": 7, "text": "a"}', ("7", "a")),
    (b'{"id": -0.50e+07, "text": "a"}', ("-0.50e+07", "a")),
    (b'{"id": 123456789012345678901234567890, "text": "a"}', ("1234567890" * 3, "a")),
    (b'{"id": null, "text": "a"}', (None, "a")),
    (b'{"id": ["x"], "text": "a"}', (None, "a")),
    (b'{"id": true, "text": "a"}', (None, "a")),
    (b'{"id": "", "text": "a"}', ("", "a")),
    (
        rb'{"text": "\"\\\/\b\f\n\r\t\u0000\u00e9\u20AC\ud83d\ude00"}',
        (None, '"\\/\b\f\n\r\t\0é€😀'),
    ),
    (rb'{"te\u0078t": "a", "i\u0064": "b"}', ("b", "a")),
    (b'{"text": "a", "text": "b"}', (None, "b")),
    (b'{"text": 5, "text": "b", "id": "x", "id": 9}', ("9", "b")),
    (b'{"text": "a", "text": 5}', "field not a string"),
    (b'{"meta": {"text": "inner"}, "text": "a", "more": [{"text": 1}, [[]], {}]}', (None, "a")),
    ('{"text": "é€😀\u2028\x7f"}'.encode(), (None, "é€😀\u2028\x7f")),
    (b"", None),
    (b" \t\r", None),
    (b'{"text": null}', "field not a string"),
    (b'{"text": 5}', "field not a string"),
    (b'{"text": ["a"]}', "field not a string"),
    (b'{"text": {"text": "a"}}', "field not a string"),
    (b"{}", "field missing"),
    (b'{"Text": "a", "text ": "b", "tex": "c", "texts": "d"}', "field missing"),
    (b'{"meta": {"text": "inner"}}', "field missing"),
    (b'["text"]', "not a JSON object"),
    (b'"text"', "not a JSON object"),
    (b"5", "not a JSON object"),
    (b"null", "not a JSON object"),
    (b'{"text": "a"', "broken JSON"),
    (b'{"text": "a', "broken JSON"),
    (b'{"text": "a"} {"text": "b"}', "broken JSON"),
    (b'{"text": "a"},', "broken JSON"),
    (b'{"text": "a",}', "broken JSON"),
    (b'{"text": "a" "id": 1}', "broken JSON"),
    (b"{'text': 'a'}", "broken JSON"),
    (b'{text: "a"}', "broken JSON"),
    (b'{"text" "a"}', "broken JSON"),
    (b'{"text": "a\tb"}', "broken JSON"),
    (b'{"text": "a\0b"}', "broken JSON"),
    (rb'{"text": "\x"}', "broken JSON"),
    (rb'{"text": "\u12g4"}', "broken JSON"),
    (rb'{"text": "\u12', "broken JSON"),
    (b'{"text": "\\', "broken JSON"),
    (b'{"text": NaN}', "broken JSON"),
    (b'{"text": "a", "x": NaN}', "broken JSON"),
    (b'{"text": "a", "x": -Infinity}', "broken JSON"),
    (b'{"text": "a", "x": 01}', "broken JSON"),
    (b'{"text": "a", "x": 1.}', "broken JSON"),
    (b'{"text": "a", "x": .5}', "broken JSON"),
    (b'{"text": "a", "x": 1e}', "broken JSON"),
    (b'{"text": "a", "x": +1}', "broken JSON"),
    (b'{"text": "a", "x": -}', "broken JSON"),
    (b'{"text": "a", "x": tru}', "broken JSON"),
    (b'{"text": "a", "x": truefalse}', "broken JSON"),
    (b'{"text": "a", "x": [1 2]}', "broken JSON"),
    (b'{"text": "a", "x": [1,]}', "broken JSON"),
    (b'{"text": "a", "x": [}', "broken JSON"),
    (b'{"text": "a", "x": {"y"}}', "broken JSON"),
    (b'{"text": "a", "x": {1: 2}}', "broken JSON"),
    (b'{"text": "a", "x": ]}', "broken JSON"),
    (b'\xef\xbb\xbf{"text": "a"}', "broken JSON"),  # not at the file's start
    (b"plain text", "broken JSON"),
    (rb'{"text": "\ud800"}', "lone surrogate"),
    (rb'{"text": "\udc00\ud800"}', "lone surrogate"),
    (rb'{"text": "\ud83dx"}', "lone surrogate"),
    (rb'{"text": "\ud83d\n"}', "lone surrogate"),
    (rb'{"text": "\ud83d\ud83d\ude00"}', "lone surrogate"),
    (rb'{"text": "a", "id": "\ude00"}', "lone surrogate"),
    (rb'{"text": "a", "other": "\ude00", "\ud800": 1}', (None, "a")),
    (b'{"text": "a", "x": "\xff"}', "invalid UTF-8"),
    (b'{"text": "\xed\xa0\x80"}', "invalid UTF-8"),
    (b'{"text": "a"} \xc3', "invalid UTF-8"),
]


@pytest.mark.parametrize(("line", "found"), LINES)
def test_a_line(tmp_path: Path, line: bytes, found: Any) -> None:
    assert expected_json(line) == found
    around = b'{"text": "before"}', b'{"text": "after"}'
    check_json(tmp_path / "x", [around[0], line, around[1]])
    check_json(tmp_path / "x", [around[0], line])  # without a newline behind it


def test_all_of_them_together(tmp_path: Path) -> None:
    lines = [line for line, _ in LINES]
    for batch in (1, 100, 1 << 20):
        check_json(tmp_path / "x", lines, batch=batch)
    assert {found for _, found in LINES if isinstance(found, str)} == {*_native.RECORD_FLAWS} - {
        "",
        "record too long",
        "nested too deeply",
        *("wrong number of columns", "NUL byte", "unclosed quote", "text after a closing quote"),
    }


def test_places_and_details(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"text": "first"}\n\n{"text": 5}\r\n{"no": 1}\n  {"text": tru}\n'
        b'{"text": "last"}'
    )
    found = read_file(path)
    assert found.documents == [(3, "first"), (61, "last")]
    assert [(r.file, r.offset, r.line, r.reason, r.detail, r.data) for r in found.rejects] == [
        ("x.jsonl", 22, 3, "field not a string", "at byte 9 of the record", b'{"text": 5}\r'),
        ("x.jsonl", 35, 4, "field missing", "no 'text'", b'{"no": 1}'),
        ("x.jsonl", 45, 5, "broken JSON", "at byte 11 of the record", b'  {"text": tru}'),
    ]
    assert [(r.offset, r.line) for r in read_file(path, batch=1).rejects] == [
        (22, 3),
        (35, 4),
        (45, 5),
    ]
    for cut in range(1, path.stat().st_size):
        again = read_file(path, cuts=[cut])
        assert again.documents == found.documents
        assert again.bad == found.bad


def test_other_fields(tmp_path: Path) -> None:
    lines = [
        b'{"text": "a", "body": "b", "id": "c", "url": "d"}',
        b'{"text": "a", "id": "c"}',
        '{"bödy": "e", "u\\"rl": 5}'.encode(),
    ]
    path = tmp_path / "x"
    for text_field in ("text", "body", "bödy"):
        for id_field in ("id", "url", 'u"rl', text_field):
            check_json(path, lines, text_field=text_field, id_field=id_field)


PATHS = [
    (b'{"meta": {"body": "x", "id": 7, "from": {"site": "web"}}}', ("7", "x", "web")),
    (b'{"meta": {"body": "x"}, "meta": 1}', "field missing"),
    (b'{"meta": 1, "meta": {"body": "x"}}', (None, "x", "other")),
    (
        b'{"meta": {"body": "x", "from": {"site": "a"}}, "meta": {"body": "y"}}',
        (None, "y", "other"),
    ),
    (b'{"meta": {"body": 1, "body": "x", "from": {"site": "a"}, "from": 2}}', (None, "x", "other")),
    (b'{"meta": {"body": "x", "from": {"site": ""}}}', (None, "x", "other")),
    (b'{"meta": {"body": "x", "from": {"site": -1.0}}}', (None, "x", "-1.0")),
    (b'{"meta": {"body": "x", "from": {"site": ["a"]}}}', (None, "x", "other")),
    (b'{"meta": {"body": "x", "from": {"site": {"site": "a"}}}}', (None, "x", "other")),
    (rb'{"\u006deta": {"b\u006fdy": "x"}}', (None, "x", "other")),
    (b'{"meta": {"body": ["x"]}}', "field not a string"),
    (b'{"meta": [{"body": "x"}]}', "field missing"),
    (b'{"meta": "body"}', "field missing"),
    (b'{"meta.body": "x", "body": "y", "x": {"meta": {"body": "z"}}}', "field missing"),
    (rb'{"meta": {"body": "x", "from": {"site": "\ud800"}}}', "lone surrogate"),
    (rb'{"meta": {"body": "\ud800", "id": "1", "from": {"site": "a"}}}', "lone surrogate"),
]


def test_paths_into_objects(tmp_path: Path) -> None:
    fields = {"text_field": "meta.body", "id_field": "meta.id", "source_field": "meta.from.site"}
    for line, found in PATHS:
        assert expected_json(line, **fields) == found
    lines = [line for line, _ in PATHS]
    for batch in (1, 200, 1 << 20):
        check_json(tmp_path / "x", lines, batch=batch, **fields)
    # one field for all, and a field within another
    check_json(tmp_path / "x", lines, text_field="meta.body", id_field="meta", source_field="meta")
    fields["source_field"] = fields["id_field"] = fields["text_field"]
    check_json(tmp_path / "x", lines, **fields)


def test_names_with_dots_and_backslashes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(rb'{"a.b": {"\\": "x"}, "a": {"b": {"\\": "y"}}}')
    for field, text in ((r"a\.b.\\", "x"), (r"a.b.\\", "y")):
        assert read_file(tmp_path / "x", input_format="jsonl", text_field=field).texts == [text]


def test_a_path_is_as_deep_as_it_may_be(tmp_path: Path) -> None:
    deep = b'{"a":' * MAX_PATH_DEPTH + b'"x"' + b"}" * MAX_PATH_DEPTH
    field = ".".join("a" * MAX_PATH_DEPTH)
    check_json(tmp_path / "x", [deep, deep[5:-1]], text_field=field)
    assert read_file(tmp_path / "x", input_format="jsonl", text_field=field).texts == ["x"]


def test_depth_has_a_limit_and_costs_no_stack(tmp_path: Path) -> None:
    limit = _native.MAX_JSON_DEPTH  # type: ignore[attr-defined]
    path = tmp_path / "x"
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        for depth, good in ((limit - 1, True), (limit, False), (1_000_000, False)):
            nested = opening * depth + b"1" + closing * depth
            path.write_bytes(b'{"text": "a", "x": ' + nested + b'}\n{"text": "b"}\n')
            found = read_file(path, input_format="jsonl")
            assert found.texts == (["a", "b"] if good else ["b"])
            assert [r.reason for r in found.rejects] == ([] if good else ["nested too deeply"])
        path.write_bytes(opening * 1_000_000)
        reject, lost = read_file(path, input_format="jsonl").rejects
        assert reject.reason == "nested too deeply"
        assert lost.lost_bytes == path.stat().st_size


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        (b'{"text": "a", "s": NaN}', "at byte 19 of the record, NaN is not JSON; write null"),
        (b'{"s":[-Infinity]}', "at byte 7 of the record, Infinity is not JSON; write null"),
        (BOM + b'{"text": "b"}', "at byte 0 of the record, it begins with a byte order mark"),
        (b'{"text": "b", Nax}', "at byte 14 of the record"),
    ],
)
def test_usual_causes_of_broken_json_are_named(tmp_path: Path, line: bytes, detail: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "a"}\n' + line)
    (reject,) = read_file(tmp_path / "a.jsonl").rejects
    assert reject.detail.partition(", as files")[0] == detail

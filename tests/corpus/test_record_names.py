"""Messages about a field that no record has name those that there are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bpe_beam.corpus.record_names import names_in
from bpe_beam.corpus.rejects import Reject, RejectReason

pytestmark = pytest.mark.quick

SOUGHT = ": text_field 'meta.body' names no field"


def named(record: Any, field: str = "meta.body") -> str:
    data = json.dumps(record).encode()
    return names_in(Reject.of("a", RejectReason.FIELD_MISSING, "", data, offset=0).to_json(), field)


def test_the_names_there_are() -> None:
    assert named({"id": 1, "content": "a"}) == f"{SOUGHT}; it has 'id', 'content'"
    assert named({}) == f"{SOUGHT}; it has no field at all"
    many = {f"f{i}": i for i in range(1025)}
    assert named(many).endswith("'f18', 'f19' and 1,005 more")
    assert named({"a.b": 1}, r"a\.c") == r": text_field 'a\\.c' names no field; it has 'a.b'"


def test_a_path_is_followed_as_far_as_it_leads() -> None:
    assert named({"meta": {"text": "a"}}) == f"{SOUGHT}; its 'meta' has 'text'"
    assert named({"meta": "a"}) == f"{SOUGHT}; its 'meta' is no object"


def test_a_record_that_is_not_kept_whole_has_no_names() -> None:
    assert named({"content": "x" * 100_000}) == SOUGHT


def test_other_reasons_name_nothing() -> None:
    assert not names_in(
        Reject.of("a", RejectReason.BROKEN_JSON, "", b"{", offset=0).to_json(), "text"
    )
    assert not names_in(Reject.of("a", RejectReason.FIELD_MISSING, "", row=3).to_json(), "a")

"""Labels of documents as text, and what is none."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bpe_beam.errors import DataError
from bpe_beam.transforms.ids_and_sources import label_column, label_of

ID = uuid.UUID(int=7)


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("é", "é"),
        ("é".encode(), "é"),
        (7, "7"),
        (2**70, str(2**70)),
        (True, "true"),
        (Decimal("1.50"), "1.50"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (ID, str(ID)),
        (None, None),
    ],
)
def test_a_value_as_text(value: Any, label: str | None) -> None:
    assert label_of(value, "the key of a document", "CountWords") == label


@pytest.mark.parametrize("value", [(1, 2), [1], {"a": 1}, object()])
def test_other_values_are_refused(value: Any) -> None:
    message = "CountWords: the key of a document must have strings, numbers, dates or UUIDs, got "
    with pytest.raises(DataError, match=message + type(value).__name__):
        label_of(value, "the key of a document", "CountWords")


def test_a_column_as_text() -> None:
    column = pa.chunked_array([[1], [None, 3]])
    table = pa.table({"source": column, "list": [[1]] * 3})
    labels = label_column(table, "source", "CountWords")
    assert labels is not None
    assert labels.equals(pa.array(["1", None, "3"], pa.large_string()))
    assert label_column(table, "id", "CountWords") is None
    with pytest.raises(DataError, match="CountWords: the column 'list' of a batch must have strin"):
        label_column(table, "list", "CountWords")

"""Records are what `dataclasses.dataclass(frozen=True)` makes of a class, in every use of one."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any, ClassVar

import pytest

from bpe_beam.record import defaults_of, is_record, names_of, record

pytestmark = pytest.mark.quick


@record
class Pair:
    KIND: ClassVar[str] = "pair"

    left: int
    right: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        if self.left < 0:
            raise ValueError("left")


@dataclasses.dataclass(frozen=True)
class Twin:
    KIND: ClassVar[str] = "pair"

    left: int
    right: tuple[int, ...] = (1,)


@record
class Empty:
    """No fields."""


@pytest.mark.parametrize("settings", [{"left": 1}, {"left": 2, "right": ()}])
def test_a_record_is_like_a_frozen_dataclass(settings: dict[str, Any]) -> None:
    one, twin = Pair(**settings), Twin(**settings)
    assert (one.left, one.right) == (twin.left, twin.right)
    assert one == Pair(*settings.values())
    assert hash(one) == hash(twin)
    assert one != twin
    assert one != Pair(7)
    assert repr(one) == repr(twin).replace("Twin", "Pair")
    assert pickle.loads(pickle.dumps(one)) == one
    match one:
        case Pair(left, right):
            assert (left, right) == (one.left, one.right)
    assert Empty() == Empty()
    assert repr(Empty()) == "Empty()"


def test_functions_of_dataclasses_work() -> None:
    one = Pair(1)
    assert dataclasses.is_dataclass(Pair)
    assert dataclasses.asdict(one) == {"left": 1, "right": (1,)}
    assert dataclasses.replace(one, left=3) == Pair(3)
    found = [(field.name, field.type, field.default) for field in dataclasses.fields(Pair)]
    assert found == [(field.name, field.type, field.default) for field in dataclasses.fields(Twin)]


def test_a_dataclass_may_extend_a_record() -> None:
    @dataclasses.dataclass(frozen=True)
    class Triple(Pair):
        third: int = 3

    assert dataclasses.asdict(Triple(1)) == {"left": 1, "right": (1,), "third": 3}
    assert Triple(1) == Triple(1) != Triple(2)


def test_fields_are_known_without_dataclasses() -> None:
    assert names_of(Pair) == ("left", "right")
    assert defaults_of(Pair(1)) == {"right": (1,)}
    assert is_record(Pair)
    assert is_record(Pair(1))
    assert not is_record(Twin)


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), ((1, (), 3), {}), ((1,), {"left": 1}), ((1,), {"middle": 1}), ((), {"right": ()})],
)
def test_wrong_arguments_are_refused(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="Pair must have each of left, right once"):
        Pair(*values, **named)


def test_a_record_checks_itself_and_does_not_change() -> None:
    with pytest.raises(ValueError, match="left"):
        Pair(-1)
    one: Any = Pair(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="left"):
        one.left = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="left"):
        del one.left
    assert one == Pair(1)

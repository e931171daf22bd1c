"""Frozen dataclasses that cost next to nothing to define.

`dataclasses` compiles six methods for each class and imports `inspect`. For the sixty classes of a
tokenizer's parts that takes as long as reading a small tokenizer; records share their methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Return a decorator that changes nothing: type checkers know this one by its name."""
        return lambda decorator: decorator


T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Make of a class what `dataclasses.dataclass(frozen=True)` makes of it.

    The class has annotations that are strings, immutable defaults, and no base class. What it
    defines itself is kept. `fields`, `replace` and `asdict` of `dataclasses` work on it.
    """
    own = vars(cls)
    hints: dict[str, str] = own.get("__annotations__", {})
    names = tuple(name for name, hint in hints.items() if not hint.startswith("ClassVar"))
    members = {
        "__match_args__": names,
        "__record_defaults__": {name: own[name] for name in names if name in own},
        "__dataclass_fields__": _FromDataclass("__dataclass_fields__"),
        "__dataclass_params__": _FromDataclass("__dataclass_params__"),
        "__init__": _init,
        "__setattr__": _refuse_change,
        "__delattr__": _refuse_change,
        "__eq__": _eq,
        "__repr__": _repr,
        "__hash__": _hash,
    }
    for name, member in members.items():
        if name not in own:
            setattr(cls, name, member)
    return cls


def is_record(value: Any) -> bool:
    """Whether a value is a record or a class of records."""
    return hasattr(value, "__record_defaults__")


def names_of(value: Any) -> tuple[str, ...]:
    """The names of the fields of a record, or of a class of records, in their order."""
    names: tuple[str, ...] = value.__match_args__
    return names


def defaults_of(value: Any) -> dict[str, Any]:
    """The defaults of a record's fields, by name; required fields have none."""
    defaults: dict[str, Any] = value.__record_defaults__
    return defaults


class _FromDataclass:
    """An attribute that `dataclasses` gives a class, made when it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, _: object, owner: Any) -> Any:
        from dataclasses import dataclass  # imports `inspect`

        members = {"__module__": owner.__module__, "__annotations__": owner.__annotations__}
        bare: Any = type(owner.__name__, (), {**defaults_of(owner), **members})
        made = getattr(dataclass(frozen=True)(bare), self._name)
        setattr(owner, self._name, made)
        return made


def _init(self: Any, *values: Any, **named: Any) -> None:
    names = self.__match_args__
    fields = self.__dict__
    fields.update(self.__record_defaults__)
    fields.update(zip(names, values, strict=False), **named)
    twice = named and not named.keys().isdisjoint(names[: len(values)])
    if twice or len(values) > len(names) or fields.keys() != {*names}:
        raise TypeError(f"{type(self).__name__} must have each of {', '.join(names)} once")
    check = getattr(self, "__post_init__", None)
    if check is not None:
        check()


def _refuse_change(self: Any, name: str, *_: Any) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot change {name!r} of a {type(self).__name__}")


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__match_args__])


def _eq(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    settings = [f"{name}={getattr(self, name)!r}" for name in self.__match_args__]
    return f"{type(self).__qualname__}({', '.join(settings)})"

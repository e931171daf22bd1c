"""Options of jobs: each is one field of a settings class, and everything else follows from it.

`option()` declares a field. The parser, the help, the keys of YAML files, the checks, the tables of
the docs and the identity of the job follow from it. `part()` declares a field whose value is
another settings class. The job has all or some of the options of that class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import NODEFAULT

from bpe_beam.errors import UsageError, require, require_between, require_choice
from bpe_beam.settings.parsing import BadValueError, check_text, parse_integer

Kind = Literal["one", "list", "many", "repeat", "pairs", "switch", "mapping"]
MAIN = "main options"  # the heading of options whose class names no group

MAX_INT64 = 2**63 - 1

JsonObject: TypeAlias = dict[str, Any]


class Option(msgspec.Struct, frozen=True):
    """One option of a job.

    Its `kind` is the form of its value:
        `one`: one value.
        `list`: one value on the command line.
        `many`: several values after one flag.
        `repeat`: one value each time the flag is given.
        `pairs`: as `repeat`, each NAME=VALUE; in YAML also a mapping of names to values.
        `switch`: no value on the command line; true or false in YAML.
        `mapping`: JSON on the command line; a mapping in YAML.
        In YAML, `list`, `many`, `repeat` and `pairs` take one value or a list.
    """

    help: str
    metavar: str = ""  # the name of the value in the help; empty for a switch
    kind: Kind = "one"
    group: str = ""  # the heading of the help that lists it; empty: the heading of its class
    # Returns the value that a text means, or a list of texts if the kind is neither `one` nor
    # `mapping`. Raises BadValueError or UsageError on other texts.
    parse: Callable[[Any], Any] | None = None
    choices: tuple[str, ...] = ()  # the allowed values of each value; empty: any
    between: tuple[int, int] | None = None  # the minimum and the maximum
    # Raises BadValueError or UsageError on a bad value; None: texts must not be empty. The default
    # is not checked.
    check: Callable[[Any], object] | None = None
    default_help: str | None = None  # the default in the help; None: the default itself
    # The case in which the artifacts, and so the job's identity, depend on it; empty: never
    identity: Literal["", "always", "if set"] = ""
    models: tuple[str, ...] = ()  # the models of `train` with the option; empty: all
    base_decides: bool = False  # whether a base tokenizer, if training continues one, decides it
    name: str = ""
    flag: str = ""  # as typed, such as `--vocab-size`, or the name of a positional argument
    required: bool = False
    default: Any = None

    @property
    def key(self) -> str:
        """The key of YAML files."""
        return self.flag.lstrip("-").replace("-", "_")

    @property
    def positional(self) -> bool:
        """Whether it is an argument without a flag."""
        return not self.flag.startswith("-")

    @property
    def typed(self) -> str:
        """The option's name in messages: the flag, or the first word of the metavar."""
        return self.metavar.split()[0] if self.positional else self.flag

    @property
    def full_help(self) -> str:
        """The help, followed by the default or by "required"."""
        default = self.default_help
        if default is None and self.default not in (None, (), False, {}):
            default = str(self.default)
        more = "required" if self.required else f"default: {default}" if default else ""
        return f"{self.help.removesuffix('.')} ({more})." if more else self.help

    def parsed(self, typed: str | list[str]) -> Any:
        if self.parse is not None:
            return self._named(self.parse, typed)
        return typed if isinstance(typed, str) else tuple(typed)

    def check_value(self, value: Any) -> None:
        if self.check is not None:
            self._named(self.check, value)
        elif self.choices:
            for each in value if isinstance(value, tuple) else (value,):
                require_choice(self.name, each, self.choices)
        elif isinstance(value, str | tuple):
            self._named(check_text, value)
        if self.between is not None:
            require_between(self.name, value, *self.between)

    def _named(self, function: Callable[[Any], Any], value: Any) -> Any:
        """Call a function of a value, and name the option in its error."""
        try:
            return function(value)
        except BadValueError as error:
            raise UsageError(str(error), (self.name,)) from None


def option(default: Any = NODEFAULT, *, help: str, **more: Any) -> Any:
    """Return the declaration of a field that is an option of a job."""
    if default is False:
        more.setdefault("kind", "switch")
    if "between" in more:
        more = {"parse": parse_integer, "metavar": "N", **more}
    if "choices" in more:
        more.setdefault("metavar", "{" + ",".join(more["choices"]) + "}")
    required = default is NODEFAULT
    return Option(help, **more, required=required, default=None if required else default)


class Part(msgspec.Struct, frozen=True):
    """A field of settings whose value is other settings."""

    settings: type[Settings]
    required: bool
    default: Settings | None
    only: tuple[str, ...] = ()  # the names of the options that the job has; empty: all of them
    without: tuple[str, ...] = ()  # the names of the options that the job does not have
    helps: Mapping[str, str] = {}  # help texts that replace the help of options, by name

    @property
    def optional(self) -> bool:
        """Whether the value may be None."""
        return not self.required and self.default is None

    def options(self) -> Iterator[Option]:
        """Yield the options of the job; an optional part has no required options."""
        for each in options_of(self.settings):
            if (not self.only or each.name in self.only) and each.name not in self.without:
                text = self.helps.get(each.name, each.help)
                required = each.required and not self.optional
                yield msgspec.structs.replace(each, help=text, required=required)


def part(settings: type[Settings], default: Any = NODEFAULT, **more: Any) -> Any:
    """Return the declaration of a field whose value is other settings."""
    required = default is NODEFAULT
    return Part(settings, required, None if required else default, **more)


class _SettingsMeta(msgspec.StructMeta):
    """Makes a struct of a class whose fields are declared by `option` and `part`."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any
    ) -> _SettingsMeta:
        declared = {
            key: value for key, value in namespace.items() if isinstance(value, Option | Part)
        }
        for key, value in declared.items():
            namespace[key] = msgspec.field() if value.required else value.default
        settings: Any = super().__new__(mcls, name, bases, namespace, **config)
        settings.declared = {**getattr(bases[0], "declared", {}), **declared}
        return settings  # type: ignore[no-any-return]


class Settings(msgspec.Struct, frozen=True, metaclass=_SettingsMeta):
    """The base of all settings, which are checked at their construction."""

    GROUP: ClassVar[str] = MAIN
    """The heading of the help that lists the options."""

    declared: ClassVar[dict[str, Option | Part]]

    def __post_init__(self) -> None:
        """Check each option, then those that depend on one another."""
        for each in own_options(type(self)):
            value = getattr(self, each.name)
            if not isinstance(value, bool) and (each.required or value != each.default):
                each.check_value(value)
        self.check()

    def __repr__(self) -> str:
        """Return the options that differ from their defaults, without secrets."""
        return f"{type(self).__name__}({' '.join(typed_options(self))})"

    def check(self) -> None:
        """Raise UsageError if settings exclude one another."""

    def require_effect(self, name: str, condition: bool, without: str, give: str) -> None:
        """Refuse an option that is not its default where it has no effect without a condition."""
        require(
            condition or getattr(self, name) == self.declared[name].default,
            f"has no effect without {without}",
            name,
            remedy=f"give {give}",
        )

    @property
    def only_estimates(self) -> bool:
        """Whether the command estimates the costs of the job instead of running it."""
        return False


@cache
def own_options(settings: type[Settings]) -> tuple[Option, ...]:
    """Return the options that a class declares itself, in their order."""
    return tuple(
        msgspec.structs.replace(
            declared,
            name=name,
            flag=declared.flag or "--" + name.replace("_", "-"),
            group=declared.group or settings.GROUP,
        )
        for name in settings.__struct_fields__
        if isinstance(declared := settings.declared.get(name), Option)
    )


def parts_of(settings: type[Settings]) -> dict[str, Part]:
    """Return the fields of a class that are other settings, by name."""
    return {name: each for name, each in settings.declared.items() if isinstance(each, Part)}


def options_of(settings: type[Settings]) -> list[Option]:
    """Return all options of a job in the order of its help.

    The order is: positional arguments, options of parts, required options of the class, its other
    options, options of the part `run`.
    """
    parts = {name: list(each.options()) for name, each in parts_of(settings).items()}
    run = parts.pop("run", [])
    of_class = sorted(own_options(settings), key=lambda each: not each.required)
    options = [*(each for options in parts.values() for each in options), *of_class]
    return sorted(options, key=lambda each: not each.positional) + run


def typed_options(settings: Settings) -> list[str]:
    """Return the words of a command line with the options of a class that differ from defaults.

    Mappings are skipped, since they may contain secrets.
    """
    words: list[str] = []
    for each in own_options(type(settings)):
        value = getattr(settings, each.name)
        if value == each.default or each.kind == "mapping":
            continue
        values = [_typed(one) for one in value] if isinstance(value, tuple) else [_typed(value)]
        if each.kind == "switch":
            words.append(each.flag)
        elif each.kind in ("repeat", "pairs"):
            words += [word for one in values for word in (each.flag, one)]
        else:
            words += [each.flag, *([",".join(values)] if each.kind == "list" else values)]
    return words


def _typed(value: Any) -> str:
    """Return a value as it is typed: a pair as NAME=VALUE, control characters as escapes."""
    text = "=".join(value) if isinstance(value, tuple) else str(value)
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def identity_of(settings: Settings) -> JsonObject:
    """Return the settings that the artifacts of a job depend on, by name, as JSON values."""
    identity = {}
    for each in own_options(type(settings)):
        value = getattr(settings, each.name)
        if each.identity == "always" or (each.identity == "if set" and value != each.default):
            identity[each.name] = _json(value)
    return identity


def _json(value: Any) -> Any:
    return [_json(each) for each in value] if isinstance(value, tuple) else value

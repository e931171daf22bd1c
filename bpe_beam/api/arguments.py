"""Keyword arguments as settings: every option of a job by its name in Python.

The options come from `bpe_beam/settings`, except options about output and runners. Values are
written as in Python, such as `vocab_size=32000`, or as on a command line, such as `"32k"`.
"""

from __future__ import annotations

import inspect
import os
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias, TypeVar

from bpe_beam.errors import UsageError
from bpe_beam.messages import did_you_mean, shortened
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.field import Option, Settings, options_of, own_options, parts_of

Values: TypeAlias = dict[str, Any]  # the values of settings by name

S = TypeVar("S", bound=Settings)
F = TypeVar("F", bound=Callable[..., Any])

_OF_RUNS = ("workers", "progress", "storage_options")
"""The options of RunSettings in calls from Python."""

_OF_FOLDERS = ("output", "dry_run", "cluster")
"""The options about an output folder, absent from calls that write none."""

_OF_WRITING_RUNS = (*_OF_RUNS, "overwrite", "runner")
"""The options of RunSettings in calls that write a folder."""

_FLAG = re.compile(r"--[a-z][a-z-]*")


def options_in_python(
    settings: type[Settings], *, writes: bool = False, without: Collection[str] = ()
) -> dict[str, Option]:
    """Return the options of a job that calls from Python have, by name."""
    of_runs = _OF_WRITING_RUNS if writes else _OF_RUNS
    not_here = {each.name for each in own_options(RunSettings)}.difference(of_runs)
    not_here.update(without, () if writes else _OF_FOLDERS)
    return {each.name: each for each in options_of(settings) if each.name not in not_here}


def values_of(
    function: str,
    settings: type[Settings],
    arguments: Mapping[str, Any],
    *,
    writes: bool = False,
    without: Collection[str] = (),
) -> Values:
    """Return the values of settings that keyword arguments mean; None means the default."""
    options = options_in_python(settings, writes=writes, without=without)
    # A flag's name means the same, such as `format` of the option `formats`.
    by_flag = {each.flag.lstrip("-").replace("-", "_"): name for name, each in options.items()}
    arguments = {by_flag.get(name, name): value for name, value in arguments.items()}
    for name in arguments:
        if name not in options:
            near = did_you_mean(name, options)
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{near}")
    arguments = {name: value for name, value in arguments.items() if value is not None}
    return {name: _value(options[name], value) for name, value in arguments.items()}


def settings_of(settings: type[S], values: Mapping[str, Any]) -> S:
    """Return settings with these values; all values of an optional part may be missing."""
    remaining = dict(values)
    for name, part in parts_of(settings).items():
        names = {option.name for option in own_options(part.settings)}
        of_part = {key: remaining.pop(key) for key in names.intersection(remaining)}
        if name not in remaining and (of_part or not part.optional):
            remaining[name] = settings_of(part.settings, of_part)
    for option in own_options(settings):
        if option.required and option.name not in remaining:
            raise UsageError("is required", (option.name,))
    return settings(**remaining)


def documented(
    settings: type[Settings], *, writes: bool = False, without: Collection[str] = ()
) -> Callable[[F], F]:
    """Return a decorator that gives a function the options of a job: signature and docstring."""

    def document(function: F) -> F:
        options = options_in_python(settings, writes=writes, without=without)
        about_files = {option.name for option in own_options(InputSettings)}
        groups: dict[str, list[str]] = {"Options": [], "Options of files": []}
        described = {*_OF_RUNS, *inspect.signature(function).parameters}
        for option in sorted(options.values(), key=lambda each: not each.required):
            if option.name not in described:
                group = "Options of files" if option.name in about_files else "Options"
                groups[group].append(_line(option, options))
        text = inspect.cleandoc(function.__doc__ or "")
        for group, lines in groups.items():
            if not lines:
                continue
            text += f"\n\n{group}::\n\n" + "\n".join(lines)  # a literal block of reStructuredText
        function.__doc__ = text
        parameters = inspect.signature(function).parameters.values()
        declared = [each for each in parameters if each.kind is not each.VAR_KEYWORD]
        names = {each.name for each in declared} | about_files
        more = [option for name, option in options.items() if name not in names]
        files = [options[name] for name in options if name in about_files]
        keywords = (
            inspect.Parameter(
                one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=Any
            )
            for one in (*more, *files)
        )
        function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [*declared, *keywords],
            return_annotation=inspect.signature(function).return_annotation,
        )
        return function

    return document


def _line(option: Option, options: Mapping[str, Option]) -> str:
    """Return an option in a docstring: its name and its help, with names instead of flags."""
    help = option.full_help.replace(". Repeat for more", "").replace(" (required)", "")
    names = {each.flag: each.name for each in options.values()}
    help = _FLAG.sub(lambda flag: names.get(flag[0], flag[0]), help)
    return textwrap.fill(
        f"{option.name}: {help}", 96, initial_indent="    ", subsequent_indent="        "
    )


def _value(option: Option, value: Any) -> Any:
    """Return the value of an option; numbers and paths become typed text, which is parsed."""
    if option.kind == "mapping":
        return value
    if isinstance(option.default, bool):
        if not isinstance(value, bool):
            raise UsageError(f"must be True or False, got {value!r}", (option.name,))
        return value
    if option.kind == "one":
        return option.parsed(_typed(option, value))
    if option.kind == "pairs" and not isinstance(value, str):
        return _pairs(option, value)
    if option.name == "allowed_special" and not isinstance(value, str):
        return tuple(_typed(option, token) for token in value) or "none"  # tokens as they are
    several = [value] if isinstance(value, (str, int, float, os.PathLike)) else value
    if not isinstance(several, Iterable):
        raise _wrong_type(option, value)
    return option.parsed([_typed(option, each) for each in several])


def _pairs(option: Option, value: Any) -> tuple[tuple[str, str], ...]:
    """Return pairs from a mapping, from pairs, or from texts as on a command line."""
    rows: list[Any] = list(value.items()) if isinstance(value, Mapping) else list(value)
    if all(isinstance(row, str) for row in rows):
        parsed: tuple[tuple[str, str], ...] = option.parsed(rows)
        return parsed
    if not all(isinstance(row, tuple) and len(row) == 2 for row in rows):
        raise UsageError(f"must be a mapping of names to values, got {value!r}", (option.name,))
    return tuple((_typed(option, name), _typed(option, each)) for name, each in rows)


def _typed(option: Option, value: Any) -> str:
    """Return a value as it is typed on a command line."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, bool):
        raise _wrong_type(option, value)
    if isinstance(value, float):
        return f"{Decimal(repr(float(value))):f}"  # without an exponent, which no option reads
    if hasattr(value, "__index__"):  # NumPy's integers too
        return str(value.__index__())
    raise _wrong_type(option, value)


def _wrong_type(option: Option, value: Any) -> UsageError:
    got = f"{shortened(repr(value))} of type {type(value).__name__}"
    return UsageError(f"must be a value of another type, got {got}", (option.name,))

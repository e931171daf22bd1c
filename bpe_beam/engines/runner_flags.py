"""The flags of Beam's runners: checks before a job starts, and those that every job has.

Beam ignores an unknown flag, and ends the process if it cannot read a value.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from apache_beam.options import pipeline_options

from bpe_beam.errors import UsageError
from bpe_beam.messages import did_you_mean

_TIMED_STREAMS = "data_buffer_time_limit_ms="
"""See `disable_timed_flush` in `transforms/shuffles.py`."""


DATAFLOW_FLAGS = (
    "--no_save_main_session",
    "--experiments=disable_logging_submission_environment",
)
"""For every job on Dataflow. Without them Beam sends everything that the started program defines,
and a list of this environment's packages, with their paths and repositories."""


class _FlagParser(pipeline_options._BeamArgumentParser):
    """Beam's own parser, which raises instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"a flag of the runner: {message.removeprefix('argument ')}")


@functools.cache
def _parser() -> _FlagParser:
    parser = _FlagParser(add_help=False, allow_abbrev=False, prog="")
    for group in _subclasses(pipeline_options.PipelineOptions):
        group._add_argparse_args(parser)
    return parser


def _subclasses(group: Any) -> list[Any]:
    """Return all subclasses, each once; plugins of users define some."""
    classes = {}
    for subclass in group.__subclasses__():
        for each in (subclass, *_subclasses(subclass)):
            classes[(each.__module__, each.__qualname__)] = each
    return list(classes.values())


@functools.cache
def known_flags() -> Mapping[str, bool]:
    """Return all flags of Beam's runners, with their dashes, and whether a value follows.

    `--runner` is not among them: it is a setting of the job.

    Cost: the first call imports modules that `import apache_beam` does not; later calls nothing.
    """
    actions: Mapping[str, argparse.Action] = _parser()._option_string_actions
    return {name: action.nargs != 0 for name, action in actions.items() if name != "--runner"}


def from_mapping(options: Mapping[str, Any]) -> list[str]:
    """Turn a YAML mapping into flags.

    The keys are the flags' names without dashes. A list repeats the flag, a mapping becomes JSON,
    true and false turn a flag without a value on and leave it off. Each flag is returned whole:
    `--name=value` or `--name`.
    """
    flags = []
    known = known_flags()
    for key, value in options.items():
        name = f"--{key}"
        if name not in known:
            raise UsageError(f"{key} is not a flag of a Beam runner{did_you_mean(name, known)}")
        if not known[name]:
            if not isinstance(value, bool):
                raise UsageError(f"{key} must be true or false, got {value!r}")
            flags += [name] if value else []
            continue
        for item in value if isinstance(value, list) else [value]:
            if item is None or isinstance(item, list):
                raise UsageError(f"{key} must have a value, got {item!r}")
            text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            flags.append(f"{name}={text}")
    return flags


def check_runner(name: str) -> None:
    """Refuse a runner that Beam does not have, under any name that Beam accepts."""
    known = {path.rpartition(".")[2] for path in pipeline_options.StandardOptions.ALL_KNOWN_RUNNERS}
    lower = name.lower()
    if "." not in name and not {lower, lower + "runner"} & {each.lower() for each in known}:
        raise UsageError(
            f"runner must be one of {', '.join(sorted(known))}, or the full name of a class, got "
            f"{name!r}{did_you_mean(name, known)}"
        )


def check(flags: Sequence[str]) -> None:
    """Refuse flags, each whole, that Beam would ignore or could not read."""
    _refuse_repeated(flags)
    try:
        options = _parser().parse_args(list(flags))
    except (ValueError, argparse.ArgumentError, AssertionError, AttributeError) as error:
        # Errors of some of Beam's own argument types, which argparse does not catch.
        raise UsageError(f"the runner's flags {' '.join(flags)} cannot be read: {error}") from error
    if any(str(each).startswith(_TIMED_STREAMS) for each in options.experiments or ()):
        raise UsageError(f"--experiments={_TIMED_STREAMS} must not be given: workers lose elements")


def _refuse_repeated(flags: Sequence[str]) -> None:
    """Refuse a flag of one value that is repeated: Beam would use the last value."""
    actions: Mapping[str, argparse.Action] = _parser()._option_string_actions
    seen: set[str] = set()
    for name in (flag.partition("=")[0] for flag in flags):
        action = actions.get(name)
        if isinstance(action, argparse._StoreAction) and action.nargs is None:
            if action.dest in seen:
                raise UsageError(f"{name} must be given once, got it twice; keep one")
            seen.add(action.dest)

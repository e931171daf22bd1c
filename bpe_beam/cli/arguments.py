"""The arguments of a job from the command line and from YAML files, and its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bpe_beam.cli.parser import Argument, job_parser, split_arguments
from bpe_beam.errors import UsageError
from bpe_beam.settings.common import RunSettings
from bpe_beam.settings.field import Option, Settings, own_options, parts_of
from bpe_beam.settings.jobs import JOBS


class Arguments(msgspec.Struct, frozen=True):
    """The arguments of one job by key, and flags of the runner: `--name=value` or `--name`."""

    job: str
    values: Mapping[str, Argument] = {}
    runner_flags: tuple[str, ...] = ()

    def name_of(self, parameter: str) -> str:
        """Return a setting's name in messages: the file, line and key that set it, or its flag."""
        for option in JOBS[self.job].options.values():
            if option.name == parameter:
                argument = self.values.get(option.key)
                return argument.where if argument is not None else option.typed
        return parameter


def read_arguments(job: str, argv: Sequence[str]) -> Arguments:
    """Return the arguments of a job from its configuration files and the command line."""
    of_job, runner_flags = split_arguments(job, argv)
    typed = vars(job_parser(job, of_job).parse_args(of_job))
    values: dict[str, Argument] = {}
    files = typed.pop("config", [])
    options = {option.key: option for option in JOBS[job].options.values()}
    if files:
        from bpe_beam.cli.config_file import read_config
        from bpe_beam.storage import Storage

        keys = {
            key: option.kind
            for key, option in options.items()
            if not option.positional and key != "config"
        }
        if JOBS[job].has_runner:
            keys["runner_options"] = "mapping"
        # Storage options in a file are still unknown here.
        name = "storage_options"
        storage = Storage(options[name].parsed(typed[name]) if name in typed else {})
        for file in files:
            values |= read_config(file, job, keys, storage)
    for key, value in typed.items():
        texts = [value] if isinstance(value, str) else value
        values[key] = Argument(options[key].typed, texts)
    return Arguments(job, values, tuple(runner_flags))


def settings_of(arguments: Arguments) -> Any:
    """Return a job's settings, such as `TrainSettings` for `train`; errors name parameters."""
    arguments = _without_unused_source(arguments)
    settings = _make(arguments, JOBS[arguments.job].settings)
    assert settings is not None
    return settings


def _make(arguments: Arguments, kind: type[Settings], optional: bool = False) -> Any:
    """Return settings of a class; None if they are optional and a required option is missing."""
    values: dict[str, Any] = {
        name: _make(arguments, part.settings, part.optional)
        for name, part in parts_of(kind).items()
    }
    present = [each for each in own_options(kind) if each.key in arguments.values]
    for option in own_options(kind):
        if option in present:
            values[option.name] = _value(option, arguments.values[option.key])
        elif option.required and not optional:
            remedy = f"see bpe-beam {arguments.job} --help"
            raise UsageError("is required", (option.name,), remedy)
        elif option.required and present:
            raise UsageError(
                "has no effect without a corpus", (present[0].name,), f"give {{{option.name}}}"
            )
        elif option.required:
            return None
    if kind is RunSettings:
        values["runner_options"] = _runner_options(arguments)
    settings = kind(**values)
    if isinstance(settings, RunSettings) and settings.runner is not None:
        from bpe_beam.engines.runner_flags import check_runner

        check_runner(settings.runner)
    return settings


def _value(option: Option, argument: Argument) -> Any:
    value = argument.value
    if not isinstance(value, list):
        return value
    if option.kind in ("one", "mapping"):
        if len(value) != 1:
            raise UsageError(f"must be one value, got {len(value)}", (option.name,))
        return option.parsed(value[0])
    return option.parsed(value)


def _runner_options(arguments: Arguments) -> tuple[str, ...]:
    """Return the flags of the runner; the command line replaces flags of files."""
    from_file = arguments.values.get("runner_options")
    if from_file is None and not arguments.runner_flags:
        return ()
    from bpe_beam.engines import runner_flags

    named = {flag.partition("=")[0] for flag in arguments.runner_flags}
    flags = []
    if from_file is not None:
        assert isinstance(from_file.value, dict)
        try:
            flags = runner_flags.from_mapping(from_file.value)
        except UsageError as error:
            raise UsageError(f"{from_file.where}: {error}") from None
    flags = [flag for flag in flags if flag.partition("=")[0] not in named]
    flags += arguments.runner_flags
    runner_flags.check(flags)
    return tuple(flags)


def _without_unused_source(arguments: Arguments) -> Arguments:
    """Return the arguments of `train` without the words of a file that the command line replaces.

    If a file names a corpus and the command line counts, or the reverse, the command line wins.
    """
    if arguments.job != "train":
        return arguments
    settings = JOBS["train"].settings
    reading = {each.key for each in own_options(parts_of(settings)["input"].settings)}
    typed = {key for key, argument in arguments.values.items() if not argument.in_file}
    unused: set[str] = set()
    if "counts" in typed and not typed & reading:
        unused = reading
    elif "input" in typed and "counts" not in typed:
        unused = {"counts"}
    used = {key: argument for key, argument in arguments.values.items() if key not in unused}
    return Arguments(arguments.job, used, arguments.runner_flags)

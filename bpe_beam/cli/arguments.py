"""What was given, on the command line and in files, made into a job's settings.

Every value is a text until it comes here, wherever it stood, so that both places read alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from bpe_beam.errors import UsageError
from bpe_beam.settings import common as s
from bpe_beam.settings.checks import require_choice
from bpe_beam.settings.counts import (
    FilterCountsSettings,
    MergeCountsSettings,
    ShowCountsSettings,
)
from bpe_beam.settings.options import JOBS
from bpe_beam.settings.parsing import (
    GivenValue,
    as_typed,
    parse_integer,
    parse_pair,
    parse_separator,
    parse_share_or_size,
    parse_size,
    parse_storage_options,
    parse_weights,
)
from bpe_beam.settings.stream import StreamTokenizeSettings
from bpe_beam.settings.train import TrainSettings
from bpe_beam.training.recipe import TIE_BREAKS

Parse = Callable[[str, str], Any]

_READING: Mapping[str, Parse | None] = {
    "input_format": None,
    "text_field": None,
    "id_field": None,
    "document_separator": parse_separator,
    "range_bytes": parse_size,
    "max_rejects": None,
    "max_lost": parse_share_or_size,
    "source_field": None,
}

_OF_CORPUS = (*_READING, "exclude", "source")
"""Options of reading a corpus, besides the inputs themselves."""

_TRAINING: Mapping[str, Parse | None] = {
    "model": None,
    "min_frequency": parse_integer,
    "tie_break": None,
    "symbols": None,
    "alphabet": None,
    "initial_alphabet": None,
    "limit_alphabet": parse_integer,
    "max_token_length": parse_integer,
    "end_of_word_suffix": None,
    "end_of_word_symbol": None,
    "continuing_subword_prefix": None,
    "unk_token": None,
    "template": None,
    "continue_from": None,
    "normalizer": None,
    "pretokenizer": None,
    "driver_memory": parse_size,
    "merge_rounds": None,
    "temperature": None,
}


@dataclass(frozen=True)
class Given:
    """What was given for one job; a flag has taken the place of the same key of a file.

    Attributes:
        job: The job.
        values: What was given, by key. Where it stood is part of each.
        runner_flags: Flags for the runner, each whole.
    """

    job: str
    values: Mapping[str, GivenValue]
    runner_flags: tuple[str, ...] = field(default=())

    def many(self, key: str) -> tuple[str, ...]:
        """All values of an option; none if it was not given."""
        value = self.values[key].value if key in self.values else []
        assert isinstance(value, list)
        return tuple(value)

    def one(self, key: str) -> str | None:
        """The value of an option that takes one, or None if it was not given."""
        values = self.many(key)
        if key in self.values and len(values) != 1:
            raise UsageError(f"{self.where(key)} takes one value, not {len(values)}")
        return values[0] if values else None

    def required(self, key: str, parse: Parse | None = None) -> Any:
        """The value of an option that has no default, parsed."""
        value = self.one(key)
        if value is None:
            name = JOBS[self.job].typed[key]
            raise UsageError(f"{name} is required; see bpe-beam {self.job} --help")
        return parse(self.where(key), value) if parse else value

    def switch(self, key: str) -> bool:
        """Whether a switch is on."""
        return key in self.values and self.values[key].value is True

    def where(self, key: str) -> str:
        """How to name an option that was given."""
        return self.values[key].where

    def pick(self, parsers: Mapping[str, Parse | None]) -> dict[str, Any]:
        """Those of some options that were given, parsed; the others keep their defaults."""
        picked = {}
        for key, parse in parsers.items():
            value = self.one(key)
            if value is not None:
                picked[key] = parse(self.where(key), value) if parse else value
        return picked


def settings_of(given: Given) -> Any:
    """Makes a job's settings.

    Args:
        given: What was given.

    Returns:
        E.g. `TrainSettings` for `train`.

    Raises:
        UsageError: If something is missing, or cannot work.
    """
    make: Mapping[str, Callable[[Given], Any]] = {
        "plan": _plan,
        "count": _count,
        "train": _train,
        "tokenize": _tokenize,
        "stream-tokenize": _stream_tokenize,
        "verify": _verify,
        "encode": _encode,
        "decode": _decode,
        "inspect": lambda g: s.InspectSettings(g.required("path"), run=_run(g)),
        "counts merge": _merge_counts,
        "counts show": _show_counts,
        "counts filter": _filter_counts,
        "quickstart": lambda g: s.QuickstartSettings(**g.pick({"output": None}), run=_run(g)),
    }
    try:
        return make[given.job](given)
    except UsageError as error:
        in_files = {key: v.where for key, v in given.values.items() if v.in_file}
        raise UsageError(as_typed(str(error), {**JOBS[given.job].typed, **in_files})) from error


def _run(given: Given) -> s.RunSettings:
    storage_options: Any = {}
    if "storage_options" in given.values:
        storage_options = given.values["storage_options"].value
        if isinstance(storage_options, list):
            storage_options = read_storage_options(
                given.where("storage_options"), storage_options[-1]
            )
    run = s.RunSettings(
        **given.pick(
            {"runner": None, "workers": parse_integer, "summary_file": None, "progress": None}
        ),
        runner_options=_runner_options(given),
        overwrite=given.switch("overwrite"),
        quiet=given.switch("quiet"),
        debug=given.switch("debug"),
        storage_options=storage_options,
    )
    if run.runner is not None:
        from bpe_beam.engines.runner_flags import check_runner

        check_runner(run.runner)
    return run


def _runner_options(given: Given) -> tuple[str, ...]:
    from_file = given.values.get("runner_options")
    if from_file is None and not given.runner_flags:
        return ()
    from bpe_beam.engines import runner_flags

    named = {flag.partition("=")[0] for flag in given.runner_flags}
    flags = []
    if from_file is not None:
        assert isinstance(from_file.value, dict)
        try:
            flags = runner_flags.from_mapping(from_file.value)
        except UsageError as error:
            raise UsageError(f"{from_file.where}: {error}") from None
    flags = [flag for flag in flags if flag.partition("=")[0] not in named]
    flags += given.runner_flags
    runner_flags.check(flags)
    return tuple(flags)


def read_storage_options(where: str, text: str) -> Mapping[str, Mapping[str, Any]]:
    """Reads storage options given as JSON, or as `@` and a local file of it.

    Raises:
        UsageError: They cannot be read. The message begins with `where` and quotes none of them.
    """
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8"
            raise UsageError(f"{where}: {text[1:]} cannot be read: {reason}") from None
    return parse_storage_options(where, text)


def _input(given: Given) -> s.InputSettings:
    if "input" not in given.values:
        raise UsageError(f"--input is required; see bpe-beam {given.job} --help")
    return s.InputSettings(
        given.many("input"),
        exclude=given.many("exclude"),
        **given.pick(_READING),
        sources=tuple(parse_pair(given.where("source"), text) for text in given.many("source")),
    )


def _plan(given: Given) -> s.PlanSettings:
    return s.PlanSettings(_input(given), run=_run(given), **given.pick({"output": None}))


def _count(given: Given) -> s.CountSettings:
    tie_break = given.one("tie_break") or "lowest_id"
    require_choice("tie_break", tie_break, TIE_BREAKS)
    return s.CountSettings(
        _input(given),
        given.required("output"),
        run=_run(given),
        **given.pick({"normalizer": None, "pretokenizer": None}),
        special_tokens=given.many("special_token"),
        with_places=tie_break == "first_seen",
    )


def _train(given: Given) -> TrainSettings:
    given = _without_unused_source(given)
    reading = [key for key in _OF_CORPUS if key in given.values]
    if "input" not in given.values and "counts" in given.values and reading:
        raise UsageError(
            f"{given.where(reading[0])} is about reading a corpus; the counts were read already"
        )
    return TrainSettings(
        given.required("output"),
        given.required("vocab_size", parse_integer),
        counts=given.one("counts"),
        input=_input(given) if "input" in given.values else None,
        run=_run(given),
        special_tokens=given.many("special_token"),
        byte_fallback=given.switch("byte_fallback"),
        weights=tuple(
            pair
            for text in given.many("weights")
            for pair in parse_weights(given.where("weights"), text)
        ),
        **given.pick(_TRAINING),
    )


def _without_unused_source(given: Given) -> Given:
    """Return the arguments of `train` without what a config says of the source that is not used.

    A config may say how a corpus is read, or which counts are used, and the command line name the
    other of the two: options on the command line win.
    """
    on_command_line = {key for key, value in given.values.items() if not value.in_file}
    unused: set[str] = set()
    if "counts" in on_command_line and not on_command_line & {"input", *_OF_CORPUS}:
        unused = {"input", *_OF_CORPUS}
    elif "input" in on_command_line and "counts" not in on_command_line:
        unused = {"counts"}
    return replace(given, values={k: v for k, v in given.values.items() if k not in unused})


def _tokenize(given: Given) -> s.TokenizeSettings:
    return s.TokenizeSettings(
        _input(given),
        given.required("tokenizer"),
        given.required("output"),
        run=_run(given),
        allowed_special=_allowed_special(given),
        **given.pick({"format": None, "append": None, "prepend": None}),
    )


def _stream_tokenize(given: Given) -> StreamTokenizeSettings:
    seconds = ("poll_seconds", "window_seconds", "until_idle_seconds")
    return StreamTokenizeSettings(
        _tokenize(given), **given.pick(dict.fromkeys(seconds, parse_integer))
    )


def _verify(given: Given) -> s.VerifySettings:
    return s.VerifySettings(
        given.required("folder"),
        full=given.switch("full"),
        input=_input(given) if "input" in given.values else None,
        run=_run(given),
    )


def _encode(given: Given) -> s.EncodeSettings:
    return s.EncodeSettings(
        given.required("tokenizer"),
        given.one("text"),
        allowed_special=_allowed_special(given),
        add_special_tokens=given.switch("add_special_tokens"),
        show=given.switch("show"),
        run=_run(given),
    )


def _decode(given: Given) -> s.DecodeSettings:
    ids = given.many("ids") if "ids" in given.values else None
    return s.DecodeSettings(given.required("tokenizer"), ids, run=_run(given))


def _merge_counts(given: Given) -> MergeCountsSettings:
    if "folders" not in given.values:
        raise UsageError(f"FOLDERS is required; see bpe-beam {given.job} --help")
    return MergeCountsSettings(given.many("folders"), given.required("output"), run=_run(given))


def _show_counts(given: Given) -> ShowCountsSettings:
    return ShowCountsSettings(
        given.required("folder"),
        sources=given.many("source"),
        **given.pick({"top": parse_integer, "min_count": parse_integer}),
        run=_run(given),
    )


def _filter_counts(given: Given) -> FilterCountsSettings:
    return FilterCountsSettings(
        given.required("folder"),
        given.required("output"),
        sources=given.many("source"),
        **given.pick({"min_count": parse_integer}),
        run=_run(given),
    )


def _allowed_special(given: Given) -> Literal["none", "all"] | tuple[str, ...]:
    values = given.many("allowed_special")
    if values in ((), ("none",)):
        return "none"
    if values == ("all",):
        return "all"
    return tuple(token for value in values for token in value.split(","))

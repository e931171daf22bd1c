"""Settings refuse what cannot work, by name; values are read as people type them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bpe_beam.errors import UsageError
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.decode import DecodeSettings
from bpe_beam.settings.encode import EncodeSettings
from bpe_beam.settings.inspect import InspectSettings
from bpe_beam.settings.jobs import JOBS
from bpe_beam.settings.quickstart import QuickstartSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.settings.train import TrainSettings
from bpe_beam.settings.verify import VerifySettings
from bpe_beam.tokenizer.components.pretokenizers import PRETOKENIZERS, is_byte_level_name

pytestmark = pytest.mark.quick

INPUT = InputSettings(("a.txt",))
COUNT = CountSettings(input=INPUT, output="out")
TRAIN = TrainSettings(output="out", vocab_size=300, input=INPUT)
TOKENIZE = TokenizeSettings(INPUT, "t.json", "out")


def test_the_help_of_symbols_names_the_pretokenizers_with_characters() -> None:
    help_text = JOBS["train"].options["--symbols"].default_help or ""
    of_characters = [name for name in PRETOKENIZERS if not is_byte_level_name(name)]
    names = f"{', '.join(of_characters[:-1])} and {of_characters[-1]}"
    assert help_text.startswith(f"characters with the pre-tokenizers {names}, ")


def test_defaults_are_the_promised_ones() -> None:
    assert (INPUT.input_format, INPUT.text_field, INPUT.id_field) == ("auto", "text", "id")
    assert (INPUT.document_separator, INPUT.range_bytes, INPUT.max_rejects) == ("\n", None, "0.1%")
    assert (COUNT.normalizer, COUNT.pretokenizer, COUNT.special_tokens) == ("none", "gpt2", ())
    assert (TRAIN.corpus_normalizer, TRAIN.corpus_pretokenizer) == ("none", "gpt2")
    assert (TRAIN.model, TRAIN.min_frequency, TRAIN.tie_break) == ("bpe", 0, None)
    assert (TRAIN.alphabet, TRAIN.driver_memory) == (None, 8_000_000_000)
    assert TRAIN.merge_rounds == "auto"
    assert (TOKENIZE.format, TOKENIZE.allowed_special) == ("megatron", "none")
    with pytest.raises(AttributeError):
        COUNT.output = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("settings", "change", "said"),
    [
        (INPUT, {"inputs": ()}, "inputs must not be empty"),
        (INPUT, {"inputs": ("",)}, "inputs must not be"),
        (INPUT, {"input_format": "xml"}, "input_format must be one of auto, text, "),
        (INPUT, {"text_field": ""}, "text_field must not be empty"),
        (INPUT, {"id_field": "\udcff"}, "id_field must be valid UTF-8"),
        (INPUT, {"document_separator": ""}, "document_separator must not be empty"),
        (INPUT, {"range_bytes": 0}, "range_bytes must be at least 1, got 0"),
        (INPUT, {"range_bytes": 2**44 + 1}, "at most 17,592,186,044,416, got 17,592,186,044,417"),
        (INPUT, {"max_rejects": "-1"}, "max_rejects must be a whole number, or a share"),
        (INPUT, {"max_rejects": "1.5"}, "max_rejects must be"),
        (INPUT, {"max_rejects": "%"}, "max_rejects must be"),
        (INPUT, {"max_rejects": "100.1%"}, "max_rejects must be at most 100%, got 100.1%"),
        (COUNT, {"output": ""}, "output must not be empty"),
        (COUNT, {"normalizer": "nfx"}, "normalizer must be one of none, nfc, nfd"),
        (COUNT, {"pretokenizer": "regex:("}, "pattern '(': missing )"),
        (COUNT, {"special_tokens": ("<a>", "<b>", "<a>")}, "special_tokens must not repeat '<a>'"),
        (COUNT, {"special_tokens": ("",)}, "special_tokens must not be empty"),
        (TRAIN, {"input": None}, "are both missing; give counts"),
        (TRAIN, {"counts": "c"}, "counts and inputs exclude each other"),
        (
            TRAIN,
            {"model": "x"},
            "one of bpe, wordpiece, prefix_bpe, word_level, unigram, mingram, got 'x'",
        ),
        (TRAIN, {"vocab_size": 0}, "vocab_size must be at least 1, got 0"),
        (TRAIN, {"symbols": "x"}, "symbols must be one of bytes, characters"),
        (TRAIN, {"limit_alphabet": -1}, "limit_alphabet must be at least 0, got -1"),
        (TRAIN, {"max_token_length": 0}, "max_token_length must be at least 1, got 0"),
        (TRAIN, {"unk_token": ""}, "unk_token must not be empty"),
        (
            TRAIN,
            {"model": "word_level", "tie_break": "lowest_id"},
            "tie_break has no effect with the model word_level",
        ),
        (
            TRAIN,
            {"model": "wordpiece", "byte_fallback": True},
            "byte_fallback has no effect with the model wordpiece, only with bpe",
        ),
        (
            TRAIN,
            {"continue_from": "f", "limit_alphabet": 3},
            "limit_alphabet and continue_from exclude each other",
        ),
        (TRAIN, {"vocab_size": 2**31 + 1}, "at most 2,147,483,648, got 2,147,483,649"),
        (TRAIN, {"min_frequency": -1}, "min_frequency must be at least 0, got -1"),
        (TRAIN, {"tie_break": "first"}, "tie_break must be one of lowest_id, first_seen"),
        (TRAIN, {"alphabet": "byte"}, "alphabet must be one of bytes, seen, got 'byte'"),
        (TRAIN, {"normalizer": "x"}, "normalizer must be one of none, "),
        (
            TRAIN,
            {"driver_memory": 999_999},
            "driver_memory must be at least 1,000,000, got 999,999",
        ),
        (TRAIN, {"merge_rounds": "x"}, "merge_rounds must be one of auto, local, distributed"),
        (
            TrainSettings(output="out", vocab_size=300, counts="c"),
            {"run": RunSettings(runner_options=("--template_location=gs://b/t",))},
            "train has no template",
        ),
        (TOKENIZE, {"tokenizer": ""}, "tokenizer must not be empty"),
        (TOKENIZE, {"formats": ("mosaic",)}, "formats must be one of megatron"),
        (TOKENIZE, {"formats": ("flat", "flat")}, "formats must not repeat 'flat'"),
        (TOKENIZE, {"append": ""}, "append must not be empty"),
        (TOKENIZE, {"prepend": "\ud800"}, "prepend must be valid UTF-8"),
        (TOKENIZE, {"allowed_special": "some"}, "allowed_special must be one of none, all"),
        (TOKENIZE, {"allowed_special": ("<a>", "")}, "allowed_special must not be empty"),
        (VerifySettings(("f",)), {"folders": ("",)}, "folders must not be empty"),
        (EncodeSettings("t"), {"text": "\udc80"}, "text must be valid UTF-8"),
        (DecodeSettings("t"), {"tokenizer": ""}, "tokenizer must not be empty"),
        (InspectSettings("p"), {"path": ""}, "path must not be empty"),
        (QuickstartSettings(), {"output": ""}, "output must not be empty"),
        (RunSettings(), {"workers": 0}, "workers must be at least 1, got 0"),
        (RunSettings(), {"workers": 2, "runner": "FlinkRunner"}, "has no effect with FlinkRunner"),
        (
            RunSettings(),
            {"workers": 2, "runner_options": ("--direct_num_workers=3",)},
            "workers and --direct_num_workers exclude each other",
        ),
        (RunSettings(), {"runner": ""}, "runner must not be empty"),
        (
            RunSettings(),
            {"runner_options": ("parallelism",)},
            "must be flags such as --name, got 'parallelism'",
        ),
        (RunSettings(), {"storage_options": {"s3": 3}}, "storage_options must be options by"),
        (RunSettings(), {"summary_file": ""}, "summary_file must not be empty"),
    ],
)
def test_what_cannot_work_is_refused_by_name(
    settings: object, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as error:
        replace(settings, **change)  # type: ignore[type-var]
    assert said in str(error.value)


def test_what_can_work_is_taken() -> None:
    for text in ("0", "10", "0%", "0.1%", "100%", "100.0%"):
        replace(INPUT, max_rejects=text)
    # One character may be a symbol of the alphabet already.
    replace(TRAIN, vocab_size=2, alphabet="seen", special_tokens=("<a>", "<b>"))
    assert (
        TrainSettings(output="out", vocab_size=9, input=INPUT, model="word_level").tie_break is None
    )
    for name in (None, "FnApiRunner", "DirectRunner", "direct", "fnapirunner"):
        assert RunSettings(runner=name, workers=2).in_process
    assert not RunSettings(runner="FlinkRunner").in_process


def test_counts_carry_their_normalizer_and_pretokenizer() -> None:
    from_counts = TrainSettings(output="out", vocab_size=300, counts="c")
    assert (from_counts.normalizer, from_counts.pretokenizer) == (None, None)


def test_secrets_are_not_shown() -> None:
    run = RunSettings(storage_options={"s3": {"secret": "hunter2"}})
    assert "hunter2" not in repr(CountSettings(input=INPUT, output="out", run=run))

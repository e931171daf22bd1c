"""What the train job is told to do: frozen settings, checked when they are made.

Light on purpose: no Beam, Arrow or NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bpe_beam.counts.weights import parse_temperature, parse_weight
from bpe_beam.engines.dataflow import require_reachable
from bpe_beam.limits import MAX_VOCAB_SIZE
from bpe_beam.settings.checks import (
    require,
    require_choice,
    require_normalizer,
    require_pretokenizer,
    require_special_tokens,
    require_text,
)
from bpe_beam.settings.common import MERGE_ROUNDS, InputSettings, RunSettings
from bpe_beam.training.recipe import ALPHABETS, MODELS, SYMBOLS, TIE_BREAKS

# Options that only some models have; the others refuse them.
_OF_MODELS = {
    "tie_break": ("bpe", "prefix_bpe", "wordpiece"),
    "initial_alphabet": ("bpe", "prefix_bpe", "wordpiece"),
    "limit_alphabet": ("bpe", "prefix_bpe", "wordpiece"),
    "max_token_length": ("bpe", "prefix_bpe", "wordpiece"),
    "continuing_subword_prefix": ("bpe", "prefix_bpe", "wordpiece"),
    "symbols": ("bpe",),
    "alphabet": ("bpe",),
    "end_of_word_suffix": ("bpe",),
    "end_of_word_symbol": ("bpe",),
    "byte_fallback": ("bpe",),
    "continue_from": ("bpe",),
}

# What a tokenizer that is continued decides by itself.
_OF_THE_OLD = (
    "symbols", "alphabet", "limit_alphabet", "end_of_word_suffix", "end_of_word_symbol",
    "continuing_subword_prefix", "byte_fallback", "unk_token", "template",
)  # fmt: skip


@dataclass(frozen=True)
class TrainSettings:
    """Word counts, or a corpus, to a tokenizer.

    Attributes:
        output: Folder of the tokenizer.
        vocab_size: Entries in all: special tokens, alphabet and what is learned.
        counts: Folder that `count` wrote; or
        input: a corpus, one of the two.
        run: How the job runs.
        model: One of `MODELS`.
        min_frequency: Learn nothing that occurs less often than this; 0, as in Hugging Face's
            trainers, stops only when nothing is left.
        tie_break: One of `TIE_BREAKS`; None: `lowest_id`, where there are ties to break.
        symbols: One of `SYMBOLS`; None goes by the pre-tokenizer.
        alphabet: One of `ALPHABETS`; None: `bytes` where symbols are bytes, else `seen`.
        initial_alphabet: Characters that are in the vocabulary even if they do not occur.
        limit_alphabet: How many characters are kept; None: all.
        max_token_length: No token of so many characters is made; None: no limit.
        end_of_word_suffix: Added to each word's last character.
        end_of_word_symbol: A character that stands after each word.
        continuing_subword_prefix: Put before each character of a word but the first.
        byte_fallback: Put the tokens of the 256 bytes into the vocabulary.
        unk_token: The unknown token; None: that of the model, if it needs one.
        template: Special tokens around `$A`, the text, that the tokenizer can put there.
        continue_from: A `tokenizer.json` whose merges are gone on from.
        special_tokens: First in the vocabulary, in this order. With `counts`: in addition to those
            that were cut when counting.
        normalizer: One of `NORMALIZERS`, or several joined by `+`. With `counts`, None, or the
            one that they were made with.
        pretokenizer: One of `PRETOKENIZERS`, or `regex:PATTERN`. With `counts` as `normalizer`.
        driver_memory: What the learner may hold, in bytes: of all words, or of a round's segments.
        merge_rounds: Where merges are learned: `local`, in this process; `distributed`, in rounds
            over words that stay on storage; `auto`: locally if the words fit `driver_memory`.
        weights: (source, decimal number): what the counts of a source are multiplied by; one that
            is not named keeps 1. Needs sources; or
        temperature: A decimal number from 0 to 1: each source's share of the text is raised to this
            power. Not with weights.
    """

    output: str
    vocab_size: int
    counts: str | None = None
    input: InputSettings | None = None
    run: RunSettings = field(default_factory=RunSettings)
    model: str = "bpe"
    min_frequency: int = 0
    tie_break: str | None = None
    symbols: str | None = None
    alphabet: str | None = None
    initial_alphabet: str | None = None
    limit_alphabet: int | None = None
    max_token_length: int | None = None
    end_of_word_suffix: str | None = None
    end_of_word_symbol: str | None = None
    continuing_subword_prefix: str | None = None
    byte_fallback: bool = False
    unk_token: str | None = None
    template: str | None = None
    continue_from: str | None = None
    special_tokens: tuple[str, ...] = ()
    normalizer: str | None = None
    pretokenizer: str | None = None
    driver_memory: int = 8 * 10**9
    merge_rounds: str = "auto"
    weights: tuple[tuple[str, str], ...] = ()
    temperature: str | None = None

    def __post_init__(self) -> None:
        """Checks each setting, and those that exclude one another."""
        require_text("output", self.output)
        self._check_source()
        require_choice("model", self.model, MODELS)
        self._check_model()
        self._check_weights()
        require_choice("merge_rounds", self.merge_rounds, MERGE_ROUNDS)
        require_special_tokens(self.special_tokens)
        require(
            1 <= self.vocab_size <= MAX_VOCAB_SIZE,
            f"vocab_size must be between 1 and {MAX_VOCAB_SIZE:,}, not {self.vocab_size:,}",
        )
        require(
            0 <= self.min_frequency < 2**63,
            f"min_frequency must be between 0 and 2^63 - 1, not {self.min_frequency:,}",
        )
        require(
            10**6 <= self.driver_memory < 2**63,
            f"driver_memory must be at least 1MB, not {self.driver_memory:,} bytes",
        )

    def _check_source(self) -> None:
        require(
            not any(flag.startswith("--template_location=") for flag in self.run.runner_options),
            "train launches its pipelines and goes on when they have ended, so there is no "
            "template of it: make one of count, and train from its counts",
        )
        require(
            (self.counts is None) != (self.input is None),
            "train learns from counts (a folder that count wrote) or from input (a corpus): "
            + ("give one of them" if self.counts is None else "not from both"),
        )
        if self.counts is not None:
            require_text("counts", self.counts)
            if self.merge_rounds == "distributed":
                require_reachable(self.run.runner, counts=(self.counts,), output=(self.output,))
        else:
            # The frozen way to give a default that holds only without counts.
            object.__setattr__(self, "normalizer", self.normalizer or "none")
            object.__setattr__(self, "pretokenizer", self.pretokenizer or "gpt2")
            require_normalizer(str(self.normalizer))
            require_pretokenizer(str(self.pretokenizer))
            assert self.input is not None
            require_reachable(self.run.runner, input=self.input.inputs, output=(self.output,))

    def _check_weights(self) -> None:
        require(
            not self.weights or self.temperature is None,
            "weights and temperature both say what sources weigh: give one of them",
        )
        names = [name for name, _ in self.weights]
        for name, weight in self.weights:
            require(names.count(name) == 1, f"weights name {name} twice")
            parse_weight(name, weight)
        if self.temperature is not None:
            parse_temperature(self.temperature)
        if self.weights or self.temperature is not None:
            require(
                self.input is None or self.input.by_source,
                "weights and temperature are about sources: tell them apart with --source or "
                "--source-field",
            )

    def _check_model(self) -> None:
        for name, models in _OF_MODELS.items():
            value = getattr(self, name)
            require(
                self.model in models or value is None or value is False,
                f"{name} does nothing for the model {self.model}; it is for {', '.join(models)}",
            )
        if self.continue_from is not None:
            require_text("continue_from", self.continue_from)
            for name in _OF_THE_OLD:
                value = getattr(self, name)
                require(
                    value is None or value is False,
                    f"{name} stands in the tokenizer that is continued and cannot be given with "
                    "continue_from",
                )
        if self.model != "word_level":
            # As above: the default of models that have ties to break.
            object.__setattr__(self, "tie_break", self.tie_break or "lowest_id")
            require_choice("tie_break", str(self.tie_break), TIE_BREAKS)
        if self.symbols is not None:
            require_choice("symbols", self.symbols, SYMBOLS)
        if self.alphabet is not None:
            require_choice("alphabet", self.alphabet, ALPHABETS)
        for name in (
            "initial_alphabet", "end_of_word_suffix", "end_of_word_symbol",
            "continuing_subword_prefix", "unk_token", "template",
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None:
                require_text(name, value)
        for name, least in (("limit_alphabet", 0), ("max_token_length", 1)):
            value = getattr(self, name)
            require(
                value is None or least <= value < 2**63,
                f"{name} must be between {least} and 2^63 - 1, not {value}",
            )

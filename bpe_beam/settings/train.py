"""Settings of `train`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from bpe_beam.counts.weights import parse_temperature, parse_weight
from bpe_beam.errors import UsageError, require
from bpe_beam.settings import common
from bpe_beam.settings.cluster import cluster_option
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.settings.field import MAX_INT64, Settings, option, own_options, part
from bpe_beam.settings.parsing import parse_length, parse_size, parse_truth, parse_weights
from bpe_beam.training.recipe import (
    ALPHABETS,
    DEFAULT_TIE_BREAK,
    MAX_PIECE_LENGTH,
    MODELS,
    SYMBOLS,
    TIE_BREAKS,
    check_decimal,
)
from bpe_beam.vocabulary_limits import MAX_VOCAB_SIZE

MERGE_ROUNDS = ("auto", "local", "distributed")  # the values of `--merge-rounds`

_ROLES = ("bos_token", "eos_token", "pad_token", "sep_token", "cls_token", "mask_token")

MIN_DRIVER_MEMORY = 10**6  # the minimum memory for training, in bytes

_MERGING = ("bpe", "wordpiece", "prefix_bpe")
_PIECES = ("unigram", "mingram")


_training = partial(option, group="training")


def _role(what: str) -> Any:
    """Return an option for the special token of a role, such as "begins a text"."""
    return _training(
        None,
        metavar="T",
        help=f"Special token that {what}. It is also written to tokenizer_config.json.",
        identity="if set",
    )


_of_bpe = partial(_training, models=("bpe",), base_decides=True)
"""An option of BPE whose value a base tokenizer decides."""


def _decimal(default: str, name: str, *, help: str, models: tuple[str, ...]) -> Any:
    """Return an option that is a decimal number, which stays a text: no float rounds it."""
    parse = partial(check_decimal, name)
    return _training(default, metavar="X", help=help, parse=parse, check=parse, models=models)


def _parse_weights(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return pairs of a source and its weight, or the file of a mixture with the source ""."""
    if len(texts) == 1 and "=" not in texts[0] and texts[0].endswith((".yaml", ".yml")):
        return (("", texts[0]),)
    return parse_weights(texts)


def _check_weights(weights: tuple[tuple[str, str], ...]) -> None:
    if [source for source, _ in weights] == [""]:
        return
    sources = [source for source, _ in weights]
    for source, weight in weights:
        require(sources.count(source) == 1, f"must not repeat {source!r}", "weights")
        parse_weight(source, weight)


class TrainingSettings(Settings, frozen=True, kw_only=True):
    """Settings of a training from Python or from the command line.

    Without an output nothing is written: the words are in memory. `weights` are (source, decimal
    number) pairs. With counts, `normalizer` and `pretokenizer` must be None or the values of the
    counts.
    """

    output: str | None = None
    vocab_size: int = option(
        help="Number of entries in the vocabulary, such as 32000 or 32k, including special tokens "
        "and the alphabet. To compare sizes, train only the largest: evaluate shows the figures "
        "of smaller ones.",
        between=(1, MAX_VOCAB_SIZE),
    )
    counts: str | None = option(
        None,
        metavar="DIR",
        help="Folder that count wrote, to train from its counts instead of --input.",
    )
    input: InputSettings | None = part(InputSettings, None)
    run: RunSettings = part(RunSettings, RunSettings())
    model: str = option(
        "bpe",
        choices=MODELS,
        help="Model of the tokenizer. wordpiece chooses merges by likelihood. prefix_bpe is what "
        "Hugging Face calls WordPiece training. unigram is SentencePiece's default; mingram spells "
        "words with the fewest tokens.",
    )
    min_frequency: int = _training(
        0,
        help="Merge only pairs that occur at least N times. With word_level, keep only words that "
        "occur at least N times.",
        default_help="0, no limit",
        between=(0, MAX_INT64),
        models=(*_MERGING, "word_level"),
    )
    weights: tuple[tuple[str, str], ...] = _training(
        (),
        metavar="SOURCE=W,...",
        kind="pairs",
        help="Weights that multiply the counts of sources, such as en=0.3,zh=2. Weight 0 excludes "
        "a source; all other sources have weight 1. Or F.yaml, the file of a mixture: each of its "
        "sources gets its share of the text.",
        parse=_parse_weights,
        check=_check_weights,
    )
    temperature: str | None = _training(
        None,
        metavar="T",
        help="Exponent of each source's share of the text, from 0 (equal shares) to 1 (the shares "
        "as they are). Cannot be used with --weights.",
        check=parse_temperature,
    )
    tie_break: str | None = _training(
        None,
        choices=TIE_BREAKS,
        help="Tie rule: which of several equally good pairs is merged first.",
        default_help=DEFAULT_TIE_BREAK,
        models=_MERGING,
    )
    symbols: str | None = _of_bpe(
        None,
        choices=SYMBOLS,
        help="Symbols of a word before the first merge: its bytes, as in GPT-2, or its characters.",
        default_help="characters with the pre-tokenizers bert, whitespace, whitespace_split, "
        "metaspace, digits, punctuation and none, unless --alphabet is bytes; else bytes",
    )
    alphabet: str | None = _of_bpe(
        None,
        choices=ALPHABETS,
        help="Symbols in the vocabulary before the first merge. bytes: all 256, so any text can "
        "be encoded. seen: the symbols of the corpus; other symbols become unknown tokens, or "
        "encoding fails.",
        default_help="bytes if the symbols are bytes, else seen",
    )
    initial_alphabet: str | None = _training(
        None,
        metavar="CHARS",
        help="Characters to add to the vocabulary, such as 0123456789, even if the corpus does "
        "not contain them.",
        models=(*_MERGING, *_PIECES),
    )
    limit_alphabet: int | None = _training(
        None,
        help="Maximum number of single characters in the vocabulary: first the characters of "
        "--initial-alphabet, then the most frequent ones. All others are removed from the words.",
        between=(0, MAX_INT64),
        models=_MERGING,
        base_decides=True,
    )
    max_token_length: int | None = _training(
        None,
        help="Never make a token of N or more characters; tokens of two characters are always "
        "allowed.",
        between=(1, MAX_INT64),
        models=_MERGING,
    )
    end_of_word_suffix: str | None = _of_bpe(
        None,
        metavar="S",
        help="Suffix of the last character of each word, such as </w>.",
    )
    end_of_word_symbol: str | None = _of_bpe(
        None,
        metavar="C",
        help="Character to put after each word as a symbol of its own. Requires --pretokenizer "
        "whitespace_split and a text without this character.",
    )
    continuing_subword_prefix: str | None = _training(
        None,
        metavar="S",
        help="Prefix of each character of a word except the first.",
        default_help="## for wordpiece and prefix_bpe",
        models=_MERGING,
        base_decides=True,
    )
    byte_fallback: bool = _training(
        False,
        help="Add the bytes <0x00> to <0xFF> to the vocabulary. They encode characters that the "
        "vocabulary lacks.",
        models=("bpe", *_PIECES),
        base_decides=True,
    )
    character_coverage: str = _decimal(
        "0.9995",
        "character_coverage",
        help="Share of the text's characters that the characters of the vocabulary have, the most "
        "frequent first, from 0.9 to 1. Others are unknown.",
        models=_PIECES,
    )
    max_piece_length: int = _training(
        16,
        help="Maximum number of characters of a token, with the U+2581 for a space.",
        between=(1, MAX_PIECE_LENGTH),
        models=_PIECES,
    )
    split_by_unicode_script: bool = _training(
        True,
        metavar="{true,false}",
        kind="one",
        help="Whether no token has characters of several scripts. Letters, and digits or signs, "
        "are of different scripts; kana are of one with Han.",
        default_help="true",
        parse=parse_truth,
        models=_PIECES,
    )
    seed_size: int = _training(
        1_000_000,
        help="Maximum number of substrings of the words with which training begins.",
        between=(1, MAX_VOCAB_SIZE),
        models=("unigram",),
    )
    shrinking_factor: str = _decimal(
        "0.75",
        "shrinking_factor",
        help="Share of the tokens that each pruning keeps, from 0.5 to 0.95.",
        models=("unigram",),
    )
    sub_iterations: int = _training(
        2,
        help="Number of steps of expectation maximization before each pruning.",
        between=(1, 100),
        models=("unigram",),
    )
    overshoot_factor: str = _decimal(
        "1.15",
        "overshoot_factor",
        help="Number of tokens that BPE learns first, as a multiple of the number of tokens that "
        "stay, from 1 to 10.",
        models=("mingram",),
    )
    unk_token: str | None = _training(
        None,
        metavar="T",
        help="Unknown token. It is the first entry of the vocabulary unless it is also a special "
        "token.",
        default_help="[UNK] for wordpiece and prefix_bpe, <unk> for word_level, unigram and "
        "mingram, none for bpe",
        base_decides=True,
    )
    template: str | None = _training(
        None,
        metavar="'T $A T'",
        help="Special tokens around a text, such as '[CLS] $A [SEP]', where $A is the text. "
        "Encoding adds them only with add_special_tokens.",
        default_help="none",
        base_decides=True,
    )
    bos_token: str | None = _role("begins a text")
    eos_token: str | None = _role("ends a text")
    pad_token: str | None = _role("fills short texts up to the length of others")
    sep_token: str | None = _role("separates two texts")
    cls_token: str | None = _role("begins a text that is to be classified")
    mask_token: str | None = _role("hides a token that a model must guess")
    model_max_length: int | None = _training(
        None,
        help="Maximum number of tokens in the model's input, for tokenizer_config.json.",
        default_help="no limit",
        parse=parse_length,
        between=(1, MAX_INT64),
        identity="if set",
    )
    chat_template: str | None = _training(
        None,
        metavar="FILE",
        help="File with a Jinja template of conversations; it is copied to chat_template.jinja.",
    )
    continue_from: str | None = _training(
        None,
        metavar="F",
        help="BPE tokenizer.json to continue. All its ids are kept, and new merges are added. "
        "Requires the same normalizer and pre-tokenizer.",
        models=("bpe",),
    )
    special_tokens: tuple[str, ...] = common.special_tokens_option(
        "Special token: it is extracted from the text, and comes first in the vocabulary. With "
        "--counts, these tokens are added to the ones that count extracted."
    )
    normalizer: str | None = common.normalizer_option(None)
    pretokenizer: str | None = common.pretokenizer_option(None)
    driver_memory: int = _training(
        8 * 10**9,
        metavar="SIZE",
        help="Memory for training. If the words need more, they stay on storage, and workers "
        "learn the merges in rounds.",
        default_help="8GB",
        parse=parse_size,
        between=(MIN_DRIVER_MEMORY, MAX_INT64),
    )
    merge_rounds: str = _training(
        "auto",
        choices=MERGE_ROUNDS,
        help="Where merges and pieces are learned. local: in this process. distributed: in rounds "
        "on the workers. Both give the same tokenizer.",
        default_help="auto, which depends on --driver-memory",
    )

    dry_run: bool = common.dry_run_option()
    cluster: tuple[tuple[str, str], ...] = cluster_option()

    @property
    def folder(self) -> str:
        """The output of a training that writes one."""
        assert self.output is not None
        return self.output

    @property
    def mixture(self) -> str | None:
        """The file of the mixture that gives the weights; None without one."""
        return dict(self.weights).get("")

    @property
    def roles(self) -> dict[str, str]:
        """The special tokens that have a role, by role."""
        named = {role: getattr(self, role) for role in _ROLES}
        return {role: token for role, token in named.items() if token is not None}

    @property
    def all_special_tokens(self) -> tuple[str, ...]:
        """The special tokens, followed by the ones that only have a role."""
        return tuple(dict.fromkeys((*self.special_tokens, *self.roles.values())))

    @property
    def corpus_normalizer(self) -> str:
        """The normalizer of a corpus that is counted."""
        in_pieces = self.model in _PIECES and self.corpus_pretokenizer == "metaspace"
        return self.normalizer or ("dummy_prefix" if in_pieces else common.DEFAULT_NORMALIZER)

    @property
    def corpus_pretokenizer(self) -> str:
        """The pre-tokenizer of a corpus that is counted."""
        default = "metaspace" if self.model in _PIECES else common.DEFAULT_PRETOKENIZER
        return self.pretokenizer or default

    @property
    def only_estimates(self) -> bool:
        return self.dry_run

    def check(self) -> None:
        require(
            not self.run.makes_template,
            "train has no template, since it launches several pipelines: make a template of count, "
            "and train from its counts",
        )
        self._check_model()
        self.require_effect("cluster", self.dry_run, "a dry run", "{dry_run}")
        require(
            not self.weights or self.temperature is None,
            "exclude each other",
            "weights",
            "temperature",
            remedy="give one of them",
        )

    def _check_model(self) -> None:
        for each in own_options(type(self)):
            if getattr(self, each.name) is each.default:
                continue
            if each.name == "continue_from" and self.model in _PIECES:
                raise UsageError(
                    f"cannot be used with the model {self.model}: its scores belong to one "
                    "vocabulary together, and no tokens can be added to them",
                    (each.name,),
                    "train a new tokenizer on all words, or add merges to one of bpe",
                )
            if each.models and self.model not in each.models:
                raise UsageError(
                    f"has no effect with the model {self.model}, only with "
                    f"{', '.join(each.models)}",
                    (each.name,),
                )
            if each.base_decides and self.continue_from is not None:
                raise UsageError(
                    "exclude each other: the base tokenizer decides it",
                    (each.name, "continue_from"),
                )


class TrainSettings(TrainingSettings, frozen=True, kw_only=True):
    """Settings of `train`: word counts, or a corpus, to a folder with a tokenizer."""

    output: str = common.output_option("tokenizer")

    def check(self) -> None:
        self._check_words()
        super().check()
        if self.weights or self.temperature is not None:
            require(
                self.input is None or self.input.by_source,
                "must have sources",
                "weights" if self.weights else "temperature",
                remedy="name the sources with {sources} or {source_field}",
            )

    def _check_words(self) -> None:
        require(
            (self.counts is None) != (self.input is None),
            "are both missing" if self.counts is None else "exclude each other",
            "counts",
            "inputs",
            remedy="give {counts}, a folder that count wrote, or {inputs}, a corpus",
        )
        if self.input is not None:
            require_reachable(self.run.runner, inputs=self.input.inputs, output=(self.output,))
        elif self.counts is not None and self.merge_rounds == "distributed":
            require_reachable(self.run.runner, counts=(self.counts,), output=(self.output,))

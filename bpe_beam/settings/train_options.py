"""The options of training that say what is learned, and how."""

from __future__ import annotations

from bpe_beam.settings.option import Option, choice
from bpe_beam.settings.train import TrainSettings as Train
from bpe_beam.training import recipe

LEARNING = (
    Option(
        "--model",
        choice(recipe.MODELS),
        "what is learned; wordpiece goes by likelihood, prefix_bpe is what Hugging Face calls "
        f"WordPiece training (default {Train.model})",
    ),
    Option(
        "--min-frequency",
        "N",
        f"learn nothing that occurs less often (default {Train.min_frequency}: only when nothing "
        "is left)",
    ),
    Option(
        "--weights",
        "SOURCE=W,...",
        "what the counts of a source are multiplied by, such as en=0.3,zh=2; 0 leaves it out, and "
        "one that is not named keeps 1",
        "pairs",
    ),
    Option(
        "--temperature",
        "T",
        "raise each source's share of the text to this power, from 0 (all alike) to 1 (as they "
        "are), instead of --weights",
    ),
    Option(
        "--tie-break",
        choice(recipe.TIE_BREAKS),
        "which of several best pairs is merged (default lowest_id)",
    ),
    Option(
        "--symbols",
        choice(recipe.SYMBOLS),
        "what words are made of at first (default: bytes for the pre-tokenizers of patterns, "
        "characters for all others)",
    ),
    Option(
        "--alphabet",
        choice(recipe.ALPHABETS),
        "start from all 256 bytes, or from the symbols seen; with bytes any text can be encoded "
        "(default: bytes where symbols are bytes, else seen)",
    ),
    Option("--initial-alphabet", "CHARS", "characters that are in the vocabulary in any case"),
    Option(
        "--limit-alphabet",
        "N",
        "keep the N most frequent characters, those of --initial-alphabet first; the others are "
        "left out of the words",
    ),
    Option("--max-token-length", "N", "make no token of N characters or more, but those of two"),
    Option("--end-of-word-suffix", "S", "add this to each word's last character, e.g. </w>"),
    Option(
        "--end-of-word-symbol",
        "C",
        "put this character after each word, a symbol of its own; with --pretokenizer "
        "whitespace_split",
    ),
    Option(
        "--continuing-subword-prefix",
        "S",
        "put this before each character of a word but the first (default ## for wordpiece and "
        "prefix_bpe)",
    ),
    Option(
        "--byte-fallback",
        "",
        "put the bytes <0x00> to <0xFF> into the vocabulary, for characters that it lacks",
        "switch",
    ),
    Option(
        "--unk-token",
        "T",
        "the unknown token, first in the vocabulary unless a special token (default [UNK] for "
        "wordpiece and prefix_bpe, <unk> for word_level, none for bpe)",
    ),
    Option(
        "--template",
        "'T $A T'",
        "special tokens that the tokenizer puts around a text, $A, where that is asked for, such "
        "as '[CLS] $A [SEP]' (default none)",
    ),
    Option(
        "--continue-from",
        "F",
        "a tokenizer.json of BPE: learn more merges, all its ids stay; same normalizer and "
        "pre-tokenizer",
    ),
)

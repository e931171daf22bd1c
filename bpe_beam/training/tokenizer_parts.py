"""From a recipe to the tokenizer that it gives."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.added_tokens import AddedToken
from bpe_beam.tokenizer.decoders import (
    BPEDecoder,
    ByteFallback,
    ByteLevelDecoder,
    Decoder,
    Fuse,
    MetaspaceDecoder,
    ReplaceDecoder,
    SequenceDecoder,
    WordPieceDecoder,
)
from bpe_beam.tokenizer.models import BPE, ErrorLocation, Model, WordLevel, WordPiece
from bpe_beam.tokenizer.normalizers import (
    WORD_END,
    Normalizer,
    NormalizerSequence,
    Replace,
    normalizer_from_name,
)
from bpe_beam.tokenizer.patterns import Pattern
from bpe_beam.tokenizer.postprocessors import (
    PostProcessor,
    SpecialToken,
    TemplatePiece,
    TemplateProcessing,
    TemplateReference,
)
from bpe_beam.tokenizer.pretokenizers import pretokenizer_from_name
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges import learn_merges
from bpe_beam.training.native_trainer import Learned, Progress, number
from bpe_beam.training.recipe import BpeRecipe, Recipe, WordLevelRecipe, WordPieceRecipe
from bpe_beam.training.word_level import learn_word_level
from bpe_beam.training.words import Words

# The pre-tokenizers whose words hold no whitespace.
_DROP_BLANKS = ("bert", "whitespace", "whitespace_split")

_LOCATION = ErrorLocation(
    token=lambda token: f"vocab: {shortened(token)}",
    merge=lambda rank: f"merges[{rank}]",
    added=lambda _: "special_tokens",
    setting=lambda name: name,
)


def learn(words: Words, recipe: Recipe, on_progress: Progress | None = None) -> Learned:
    """Learn the vocabulary of a recipe.

    Args:
        words: Unique words; for `first_seen` in the order of their first occurrence.
        recipe: What is trained.
        on_progress: Called with the number of merges learned since the last call.

    Raises:
        UsageError: The vocabulary is too small, or the words do not fit the recipe.
        OverflowError: The sum of counts is beyond 64 bits.
    """
    if isinstance(recipe, WordLevelRecipe):
        return learn_word_level(words, recipe)
    return learn_merges(words, recipe, on_progress)


def check_text_steps(recipe: Recipe, pretokenizer: str) -> None:
    """Refuses a recipe that the words of a pre-tokenizer do not fit.

    Raises:
        UsageError: An end-of-word symbol where words do not end at whitespace.
    """
    symbol = recipe.end_of_word_symbol if isinstance(recipe, BpeRecipe) else ""
    if symbol and pretokenizer != "whitespace_split":
        raise UsageError(
            f"needs the pre-tokenizer whitespace_split, got {pretokenizer}", ("end_of_word_symbol",)
        )


def check_parts(recipe: Recipe, normalizer: str, pretokenizer: str) -> None:
    """Refuses, before anything is learned, a recipe whose tokenizer could not be made.

    Args:
        recipe: The settings.
        normalizer: What is done to the text before it is counted, by name.
        pretokenizer: How it is cut into words, by name.

    Raises:
        UsageError: What `tokenizer_of` would refuse.
    """
    nothing = Learned(number({}, recipe.specials), (), np.zeros(0, np.int64))
    tokenizer_of(nothing, recipe, normalizer, pretokenizer)


def tokenizer_of(
    learned: Learned, recipe: Recipe, normalizer: str = "none", pretokenizer: str = "gpt2"
) -> Tokenizer:
    """The tokenizer that was learned.

    Args:
        learned: What `learn` gave.
        recipe: The settings that it was learned by.
        normalizer: What was done to the text before it was counted, by name.
        pretokenizer: How it was cut into words, by name.

    Raises:
        UsageError: Text steps that do not fit the recipe; none that `check_parts` let pass.
    """
    check_text_steps(recipe, pretokenizer)
    in_bytes = isinstance(recipe, BpeRecipe) and recipe.symbols == "bytes"
    ids = learned.vocab
    by_id = sorted(recipe.specials, key=lambda token: ids[token])
    spec = TokenizerSpec(
        _model_of(learned, recipe),
        tuple(AddedToken(ids[token], token) for token in by_id),
        _normalizer_of(recipe, normalizer),
        pretokenizer_from_name(pretokenizer, byte_level=in_bytes),
        _post_processor_of(recipe, ids),
        _decoder_of(recipe, pretokenizer),
    )
    spec.check(_LOCATION)
    return Tokenizer(spec)


def _post_processor_of(recipe: Recipe, ids: Mapping[str, int]) -> PostProcessor | None:
    """The template; for a second text, what stands after the first is repeated after it."""
    words = recipe.template.split()
    if not words:
        return None
    single = [_piece(word, "A", 0) for word in words]
    after = words[words.index("$A") + 1 :]
    second = [_piece("$A", "B", 1), *(_piece(word, "B", 1) for word in after)]
    special = {word: SpecialToken(word, (ids[word],), (word,)) for word in words if word != "$A"}
    return TemplateProcessing(tuple(single), (*single, *second), special)


def _piece(word: str, text: str, type_id: int) -> TemplatePiece:
    if word == "$A":
        return TemplatePiece(text=TemplateReference(text, type_id))
    return TemplatePiece(special=TemplateReference(word, type_id))


def _model_of(learned: Learned, recipe: Recipe) -> Model:
    vocab = dict(learned.vocab)
    if isinstance(recipe, BpeRecipe) and not recipe.for_wordpiece:
        return BPE(
            vocab,
            learned.merges,
            unk_token=recipe.unk_token,
            continuing_subword_prefix=recipe.continuing_subword_prefix or None,
            end_of_word_suffix=recipe.end_of_word_suffix or None,
            byte_fallback=recipe.byte_fallback,
        )
    unknown = str(recipe.unk_token)
    if isinstance(recipe, BpeRecipe | WordPieceRecipe):
        return WordPiece(vocab, unknown, recipe.continuing_subword_prefix)
    return WordLevel(vocab, unknown)


def _normalizer_of(recipe: Recipe, name: str) -> Normalizer | None:
    normalizer = normalizer_from_name(name)
    if not isinstance(recipe, BpeRecipe) or not recipe.end_of_word_symbol:
        return normalizer
    ending = Replace(Pattern(regex=WORD_END), recipe.end_of_word_symbol)
    if normalizer is None:
        return ending
    first = normalizer.normalizers if isinstance(normalizer, NormalizerSequence) else (normalizer,)
    return NormalizerSequence((*first, ending))


def _decoder_of(recipe: Recipe, pretokenizer: str) -> Decoder | None:
    """What puts words together again: with blanks between them, unless they hold their own."""
    if isinstance(recipe, BpeRecipe) and recipe.symbols == "bytes":
        return ByteLevelDecoder()
    if pretokenizer not in _DROP_BLANKS:
        return _joining(recipe, pretokenizer)
    decoders: list[Decoder] = []
    if isinstance(recipe, BpeRecipe) and (recipe.end_of_word_suffix or recipe.end_of_word_symbol):
        decoders.append(BPEDecoder(recipe.end_of_word_suffix or recipe.end_of_word_symbol))
    elif isinstance(recipe, BpeRecipe | WordPieceRecipe) and recipe.continuing_subword_prefix:
        decoders.append(WordPieceDecoder(recipe.continuing_subword_prefix))
    if isinstance(recipe, BpeRecipe) and recipe.byte_fallback:
        decoders += [ByteFallback(), Fuse()]
    if len(decoders) > 1:
        return SequenceDecoder(tuple(decoders))
    return decoders[0] if decoders else None


def _joining(recipe: Recipe, pretokenizer: str) -> Decoder:
    """The decoder where blanks are within the words: takes marks away and adds nothing."""
    decoders: list[Decoder] = []
    if isinstance(recipe, BpeRecipe) and recipe.end_of_word_suffix:
        pattern = Pattern(regex=re.escape(recipe.end_of_word_suffix) + "$")
        decoders.append(ReplaceDecoder(pattern, ""))
    if isinstance(recipe, BpeRecipe | WordPieceRecipe) and recipe.continuing_subword_prefix:
        pattern = Pattern(regex=r"\A" + re.escape(recipe.continuing_subword_prefix))
        decoders.append(ReplaceDecoder(pattern, ""))
    if pretokenizer == "metaspace":
        decoders.append(MetaspaceDecoder())
    if isinstance(recipe, BpeRecipe) and recipe.byte_fallback:
        decoders.append(ByteFallback())
    if pretokenizer != "metaspace" or len(decoders) > 1:
        decoders.append(Fuse())
    return SequenceDecoder(tuple(decoders)) if len(decoders) > 1 else decoders[0]

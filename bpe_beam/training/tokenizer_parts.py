"""From a recipe to its tokenizer."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from bpe_beam.errors import require
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
from bpe_beam.tokenizer.models import BPE, OF_ARGUMENTS, Model, WordLevel, WordPiece
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
from bpe_beam.training.initial_vocabulary import assign_ids
from bpe_beam.training.native_trainer import TrainingResult
from bpe_beam.training.recipe import BpeRecipe, Recipe, WordLevelRecipe
from bpe_beam.training.symbols import Spelling, spelling_of

# The pre-tokenizers whose words have no whitespace.
_DROP_BLANKS = ("bert", "whitespace", "whitespace_split")


def check_parts(recipe: Recipe, normalizer: str, pretokenizer: str) -> None:
    """See `tokenizer_of`: refuse what it would refuse, before anything is learned."""
    nothing = TrainingResult(assign_ids({}, recipe.specials), (), np.zeros(0, np.int64))
    tokenizer_of(nothing, recipe, normalizer, pretokenizer)


def tokenizer_of(
    learned: TrainingResult, recipe: Recipe, normalizer: str = "none", pretokenizer: str = "gpt2"
) -> Tokenizer:
    """Return the tokenizer that was trained.

    Args:
        learned: The result of `learn`.
        recipe: What was trained.
        normalizer: Name of the normalizer of the words.
        pretokenizer: Name of the pre-tokenizer of the words.

    Raises:
        UsageError: Text steps that do not fit the recipe; `check_parts` refuses them before.
    """
    spelling = spelling_of(recipe)
    require(  # elsewhere words do not end at whitespace
        not spelling.end_symbol or pretokenizer == "whitespace_split",
        f"needs the pre-tokenizer whitespace_split, got {pretokenizer}",
        "end_of_word_symbol",
    )
    ids = learned.vocab
    by_id = sorted(recipe.specials, key=lambda token: ids[token])
    spec = TokenizerSpec(
        _model_of(learned, recipe),
        tuple(AddedToken(ids[token], token) for token in by_id),
        _normalizer_of(spelling, normalizer),
        pretokenizer_from_name(pretokenizer, byte_level=spelling.in_bytes),
        _post_processor_of(recipe, ids),
        _decoder_of(recipe, pretokenizer),
    )
    spec.check(OF_ARGUMENTS)
    return Tokenizer(spec)


def _post_processor_of(recipe: Recipe, ids: Mapping[str, int]) -> PostProcessor | None:
    """Return the template; for a second text, what follows the first is repeated after it."""
    words = recipe.template.split()
    if not words:
        return None
    single = [_template_piece(word, "A", 0) for word in words]
    after = words[words.index("$A") + 1 :]
    second = [_template_piece(word, "B", 1) for word in ("$A", *after)]
    special = {word: SpecialToken(word, (ids[word],), (word,)) for word in words if word != "$A"}
    return TemplateProcessing(tuple(single), (*single, *second), special)


def _template_piece(word: str, text: str, type_id: int) -> TemplatePiece:
    if word == "$A":
        return TemplatePiece(text=TemplateReference(text, type_id))
    return TemplatePiece(special=TemplateReference(word, type_id))


def _model_of(learned: TrainingResult, recipe: Recipe) -> Model:
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
    if isinstance(recipe, WordLevelRecipe):
        return WordLevel(vocab, unknown)
    return WordPiece(vocab, unknown, recipe.continuing_subword_prefix)


def _normalizer_of(spelling: Spelling, name: str) -> Normalizer | None:
    normalizer = normalizer_from_name(name)
    if not spelling.end_symbol:
        return normalizer
    ending = Replace(Pattern(regex=WORD_END), spelling.end_symbol)
    if normalizer is None:
        return ending
    first = normalizer.normalizers if isinstance(normalizer, NormalizerSequence) else (normalizer,)
    return NormalizerSequence((*first, ending))


def _decoder_of(recipe: Recipe, pretokenizer: str) -> Decoder | None:
    """Return the decoder that joins words, with blanks between words that have no blanks."""
    spelling = spelling_of(recipe)
    if spelling.in_bytes:
        return ByteLevelDecoder()
    fallback = isinstance(recipe, BpeRecipe) and recipe.byte_fallback
    if pretokenizer in _DROP_BLANKS:
        decoders = _with_blanks(spelling, fallback)
    else:
        decoders = _without_blanks(spelling, fallback, pretokenizer == "metaspace")
    if len(decoders) > 1:
        return SequenceDecoder(tuple(decoders))
    return decoders[0] if decoders else None


def _with_blanks(spelling: Spelling, fallback: bool) -> list[Decoder]:
    """Return decoders that put blanks between words."""
    decoders: list[Decoder] = []
    ending = spelling.suffix or spelling.end_symbol
    if ending:
        decoders.append(BPEDecoder(ending))
    elif spelling.prefix:
        decoders.append(WordPieceDecoder(spelling.prefix))
    return [*decoders, ByteFallback(), Fuse()] if fallback else decoders


def _without_blanks(spelling: Spelling, fallback: bool, metaspace: bool) -> list[Decoder]:
    """Return decoders that remove decorations and add nothing: blanks are within the words."""
    marks = ((spelling.suffix, "{}$"), (spelling.prefix, r"\A{}"))
    decoders: list[Decoder] = [
        ReplaceDecoder(Pattern(regex=position.format(re.escape(mark))), "")
        for mark, position in marks
        if mark
    ]
    if metaspace:
        decoders.append(MetaspaceDecoder())
    if fallback:
        decoders.append(ByteFallback())
    return decoders if metaspace and len(decoders) == 1 else [*decoders, Fuse()]

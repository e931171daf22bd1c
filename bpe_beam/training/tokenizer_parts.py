"""From a recipe, or a base tokenizer, and what was learned to a tokenizer."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from bpe_beam.errors import require
from bpe_beam.tokenizer.components import models, normalizers, pretokenizers
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.decoders import (
    BPEDecoder,
    ByteFallback,
    ByteLevelDecoder,
    Decoder,
    Fuse,
    MetaspaceDecoder,
    ReplaceDecoder,
    SequenceDecoder,
    StripDecoder,
    WordPieceDecoder,
)
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.components.postprocessors import PostProcessor, template_of
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.merges.initial_vocabulary import assign_ids
from bpe_beam.training.merges.native_trainer import TrainingResult
from bpe_beam.training.merges.symbols import Spelling, spelling_of
from bpe_beam.training.recipe import BpeRecipe, PieceRecipe, Recipe, WordLevelRecipe

# The pre-tokenizers whose words have no whitespace.
_DROP_BLANKS = ("bert", "whitespace", "whitespace_split")

_SPACE = "\u2581"
_END = r"(?![\s\S])"
"""The pattern of a string's end, which engines write in different ways."""

# Noncharacters, which Unicode keeps for a program's own use, in the decoders of byte tokens.
_JOINED, _ENDED = "\ufdd0", "\ufdd1"
_HIDDEN = ("\ufdd2", "\ufdd3")

_BYTE = ("<", "0", "x", "[0-9A-F]", "[0-9A-F]", ">")
_WITHIN_BYTE = "".join(
    rf"(?!(?<=\A{''.join(_BYTE[:at])}){''.join(_BYTE[at:])}{_END})" for at in range(1, len(_BYTE))
)
_WITHIN_TEXT = rf"(?<=[\s\S])(?=[\s\S]){_WITHIN_BYTE}"
"""The pattern of what is between two characters of a token, unless it is the token of a byte."""


def check_parts(recipe: Recipe, normalizer: str, pretokenizer: str) -> None:
    """See `tokenizer_of`: refuse what it would refuse, before anything is learned."""
    nothing = TrainingResult(assign_ids({}, recipe.specials), (), np.zeros(0, np.int64))
    tokenizer_of(nothing, recipe, normalizer, pretokenizer)


def tokenizer_of(
    learned: TrainingResult, recipe: Recipe, normalizer: str = "none", pretokenizer: str = "gpt2"
) -> Tokenizer:
    """Return the tokenizer that was trained."""
    spelling = spelling_of(recipe)
    require(  # elsewhere words do not end at whitespace
        not spelling.end_symbol or pretokenizer == "whitespace_split",
        f"needs the pre-tokenizer whitespace_split, got {pretokenizer}",
        "end_of_word_symbol",
    )
    require(
        "dummy_prefix" not in normalizer.split("+") or pretokenizer == "metaspace",
        f"dummy_prefix needs the pre-tokenizer metaspace, got {pretokenizer}: no other removes "
        "the prefix when it decodes",
        "normalizer",
    )
    ids = learned.vocab
    by_id = sorted(recipe.specials, key=lambda token: ids[token])
    spec = TokenizerSpec(
        _model_of(learned, recipe),
        tuple(AddedToken(ids[token], token) for token in by_id),
        _normalizer_of(spelling, normalizer),
        pretokenizers.pretokenizer_from_name(pretokenizer, byte_level=spelling.in_bytes),
        _post_processor_of(recipe, ids),
        _decoder_of(recipe, pretokenizer),
    )
    spec.check(models.OF_ARGUMENTS)
    return Tokenizer(spec)


def _post_processor_of(recipe: Recipe, ids: Mapping[str, int]) -> PostProcessor | None:
    """Return the template; for a second text, what follows the first is repeated after it."""
    words = recipe.template_parts
    if not words:
        return None
    at = words.index("$A")
    return template_of(words[:at], words[at + 1 :], ids.__getitem__, repeats_before=False)


def _model_of(learned: TrainingResult, recipe: Recipe) -> models.Model:
    vocab = dict(learned.vocab)
    if isinstance(recipe, BpeRecipe) and not recipe.for_wordpiece:
        return models.BPE(
            vocab,
            learned.merges,
            unk_token=recipe.unk_token,
            continuing_subword_prefix=recipe.continuing_subword_prefix or None,
            end_of_word_suffix=recipe.end_of_word_suffix or None,
            byte_fallback=recipe.byte_fallback,
        )
    unknown = str(recipe.unk_token)
    if isinstance(recipe, PieceRecipe):
        scores = learned.scores or [0.0] * len(vocab)
        pieces = list(zip(vocab, scores, strict=True))
        return models.Unigram(pieces, vocab[unknown], recipe.byte_fallback)
    if isinstance(recipe, WordLevelRecipe):
        return models.WordLevel(vocab, unknown)
    return models.WordPiece(vocab, unknown, recipe.continuing_subword_prefix)


def _normalizer_of(spelling: Spelling, name: str) -> normalizers.Normalizer | None:
    normalizer = normalizers.normalizer_from_name(name)
    if not spelling.end_symbol:
        return normalizer
    ending = normalizers.Replace(Pattern(regex=normalizers.WORD_END), spelling.end_symbol)
    if normalizer is None:
        return ending
    first = (
        normalizer.normalizers
        if isinstance(normalizer, normalizers.NormalizerSequence)
        else (normalizer,)
    )
    return normalizers.NormalizerSequence((*first, ending))


def _decoder_of(recipe: Recipe, pretokenizer: str) -> Decoder | None:
    """Return the decoder that joins words, with blanks between words that have no blanks."""
    spelling = spelling_of(recipe)
    blanks, metaspace = pretokenizer in _DROP_BLANKS, pretokenizer == "metaspace"
    if spelling.in_bytes:
        decoders: list[Decoder] = [ByteLevelDecoder()]
        if metaspace:
            decoders += [_replace(rf"\A{_SPACE}", ""), _replace(_SPACE, " ")]
    elif isinstance(recipe, BpeRecipe | PieceRecipe) and recipe.byte_fallback:
        decoders = _with_fallback(spelling, blanks, pretokenizer != "whitespace_split")
        if metaspace:  # a run of bytes may have several words
            decoders += [_replace(rf"(?<=[\s\S]){_SPACE}", " "), MetaspaceDecoder()]
    elif blanks:
        decoders = _with_blanks(spelling, pretokenizer != "whitespace_split")
    else:
        decoders = [_replace(pattern, "") for pattern in _decorations(spelling)]
        decoders.append(MetaspaceDecoder() if metaspace else Fuse())
    if len(decoders) > 1:
        return SequenceDecoder(tuple(decoders))
    return decoders[0] if decoders else None


def _replace(regex: str, content: str) -> ReplaceDecoder:
    return ReplaceDecoder(Pattern(regex=regex), content)


def _decorations(spelling: Spelling) -> list[str]:
    """Return the patterns of the decorations in a token: the prefix, the mark of a word's end."""
    ending = spelling.suffix or spelling.end_symbol
    patterns = [rf"\A{re.escape(spelling.prefix)}"] if spelling.prefix else []
    return [*patterns, re.escape(ending) + _END] if ending else patterns


def _with_blanks(spelling: Spelling, cleanup: bool) -> list[Decoder]:
    """Return decoders that put blanks between words."""
    ending = spelling.suffix or spelling.end_symbol
    if not ending:
        return [WordPieceDecoder(spelling.prefix, cleanup)] if spelling.prefix else []
    prefix = _decorations(spelling)[:-1]
    return [*(_replace(pattern, "") for pattern in prefix), BPEDecoder(ending)]


def _with_fallback(spelling: Spelling, blanks: bool, cleanup: bool) -> list[Decoder]:
    """Return decoders of byte tokens, which encode a character with its decorations.

    `ByteFallback` joins the bytes of several characters, and of several words. So the decorations
    of other tokens are replaced before it, and texts in them that look like decorations are
    hidden from the replacement of the bytes' decorations.
    """
    ending = spelling.suffix or spelling.end_symbol
    if blanks and not ending and not spelling.prefix:
        return [ByteFallback(), _replace(_END, " "), Fuse(), StripDecoder(" ", 0, 1)]
    joins = blanks and not ending  # the prefix alone tells where a word begins
    marks = []
    if spelling.prefix:
        marks.append((spelling.prefix, _JOINED if joins else "", _HIDDEN[0]))
    if ending:
        marks.append((ending, _ENDED if blanks else "", _HIDDEN[1]))
    decoders: list[Decoder] = [
        _replace(pattern, content)
        for pattern, (_, content, _) in zip(_decorations(spelling), marks, strict=True)
    ]
    decoders += [_replace(re.escape(mark), hidden) for mark, _, hidden in marks]
    if joins:
        decoders.append(_replace(_WITHIN_TEXT, _JOINED))
    decoders.append(ByteFallback())
    decoders += [_replace(re.escape(mark), content) for mark, content, _ in marks]
    if joins:
        decoders += [
            Fuse(),
            _replace(rf"(?<=[^{_JOINED}])(?=[^{_JOINED}])", " "),
            _replace(_JOINED, ""),
        ]
        if cleanup:
            decoders.append(_replace(r" (?=[.?!,])", ""))
    elif blanks:
        decoders += [Fuse(), _replace(_ENDED + _END, ""), _replace(_ENDED, " ")]
    return [*decoders, *(_replace(hidden, mark) for mark, _, hidden in marks)]


# ---- more merges for a base tokenizer, whose ids stay ----

# Number of unused ids that do no harm.
_SPARE_IDS = 1_000_000


def recipe_like(base: Tokenizer, recipe: BpeRecipe) -> BpeRecipe:
    """Return a recipe with those settings that a base tokenizer determines."""
    spec, model = base.spec, base.spec.model
    in_bytes = spec.model_reads_bytes
    _require(isinstance(model, models.BPE), f"a tokenizer of BPE, got {model.json_type}")
    assert isinstance(model, models.BPE)
    _require(
        in_bytes or not pretokenizers.ends_in_bytes(spec.pre_tokenizer),
        "no byte-level tokenizer with decorated symbols, and none without all bytes and with an "
        "unknown token",
    )
    _require(
        base.max_id <= 2 * base.vocab_size + _SPARE_IDS,
        f"a tokenizer with few unused ids, got {base.vocab_size:,} ids up to {base.max_id:,}",
    )
    for token in spec.added_tokens:
        _require(
            len(token.content) > 1 or token.content in model.vocab,
            "a tokenizer without added tokens of one character, which training could also make, "
            f"got {token.content!r}",
        )
    require(recipe.limit_alphabet is None, "exclude each other", "limit_alphabet", "continue_from")
    return replace(
        recipe,
        symbols="bytes" if in_bytes else "characters",
        alphabet="seen",  # the alphabet of the tokenizer, and new symbols
        unk_token=model.unk_token,
        continuing_subword_prefix=model.continuing_subword_prefix or "",
        end_of_word_suffix=model.end_of_word_suffix or "",
        byte_fallback=model.byte_fallback,
    )


def check_same_words(base: Tokenizer, normalizer: str, pretokenizer: str) -> None:
    """Refuse words of another normalizer or pre-tokenizer than a base tokenizer has."""
    spec = base.spec
    _require(
        normalizers.normalizer_from_name(normalizer) == spec.normalizer,
        f"a tokenizer with the normalizer of the words, {normalizer!r}",
    )
    in_bytes = spec.model_reads_bytes
    wanted = pretokenizers.pretokenizer_from_name(pretokenizer, byte_level=in_bytes)
    _require(
        wanted == spec.pre_tokenizer
        # The same pattern may have several spellings.
        or pretokenizers.steps_of(wanted, last_as_bytes=in_bytes)
        == pretokenizers.steps_of(spec.pre_tokenizer, last_as_bytes=in_bytes),
        f"a tokenizer with the pre-tokenizer of the words, {pretokenizer!r}",
    )


def check_continued(base: Tokenizer, recipe: BpeRecipe) -> None:
    """See `continued`: refuse what it would refuse, before anything is learned."""
    ids = assign_ids(base.vocab, recipe.specials)
    continued(base, TrainingResult(ids, tuple(base.merges), np.zeros(0, np.int64)), recipe)


def continued(base: Tokenizer, learned: TrainingResult, recipe: BpeRecipe) -> Tokenizer:
    """Return a base tokenizer with more merges; its other parts stay.

    As soon as its model has more entries or merges it has the added tokens too: other programs
    renumber those that a model lacks.
    """
    spec, model = base.spec, base.spec.model
    assert isinstance(model, models.BPE)
    grown = (len(learned.vocab), len(learned.merges)) > (len(base.vocab), len(model.merges))
    known = {token.content for token in spec.added_tokens}
    new = [token for token in recipe.specials if token not in known]
    added = [AddedToken(learned.vocab[token], token) for token in new]
    result = replace(
        spec,
        model=replace(model, vocab=learned.vocab, merges=learned.merges) if grown else model,
        added_tokens=(*spec.added_tokens, *sorted(added, key=lambda token: token.id)),
    )
    result.check(models.ErrorLocation())
    return Tokenizer(result)


def _require(condition: bool, expected: str) -> None:
    require(condition, f"must be {expected}", "continue_from")

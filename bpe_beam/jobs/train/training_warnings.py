"""The warnings of a training: about the words that were counted, and about the result."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bpe_beam import _native
from bpe_beam.jobs.corpus import summary
from bpe_beam.jobs.train.plan import PlannedCounts, TrainingPlan
from bpe_beam.jobs.train.summary import bytes_per_token
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training.learn import is_nearly_characters
from bpe_beam.training.merges.native_trainer import MAX_TEXT, TrainingResult

_LONG_TOKEN = 1_000  # a token of more characters than this is worth a warning

_SEPARATOR = b"\xff"  # follows each word where many are searched at once; no token has this byte


def _added_token_warnings(plan: TrainingPlan, counts: PlannedCounts) -> list[str]:
    """Return a warning if words of the counts have added tokens of the base tokenizer.

    A word that has one is divided there when text is encoded, so that merges over it are of no
    use. An added token that the pre-tokenizer divides is not in one word, and is named without a
    number.
    """
    added = (token.content for token in plan.added_tokens)
    tokens = [token for token in added if token not in counts.manifest.special_tokens]
    if not tokens:
        return []
    import pyarrow.compute as pc  # slow to import

    finder = _native.TokenFinder([(text.encode(), i, False) for i, text in enumerate(tokens)])
    totals = [0] * len(tokens)
    for words in counts.words(plan.storage):
        texts = words["word"].combine_chunks().cast(pa.large_binary())
        ends = (pa.scalar(text, pa.large_binary()) for text in (b"", _SEPARATOR))
        _, positions, data = pc.binary_join_element_wise(texts, *ends).buffers()
        offsets = np.frombuffer(positions, np.int64)
        numbers = words["count"].to_numpy()
        for token, begin, _ in finder.find(data):
            assert token is not None  # none is special
            word = int(np.searchsorted(offsets, begin, side="right")) - 1
            totals[token] += int(numbers[word])
    unit = 1 if counts.weights is None else counts.weights.unit
    listed = [
        f"{shortened(t)} {n // unit:,} times" for t, n in zip(tokens, totals, strict=True) if n
    ]
    if not listed:
        return []
    return [
        f"the counted words have added tokens of {plan.settings.continue_from}: "
        f"{', '.join(listed)}. They were counted as plain text, and merges over them are of no "
        "use: train from the corpus, or count with --special-token to extract them"
    ]


def training_warnings(
    plan: TrainingPlan, tokenizer: Tokenizer, learned: TrainingResult
) -> list[str]:
    """Return the warnings about the words that were counted, and about the result."""
    settings, recipe, counts = plan.settings, plan.recipe, plan.counts
    assert counts is not None
    warnings = _added_token_warnings(plan, counts)
    added = [t for t in recipe.special_tokens if t not in counts.manifest.special_tokens]
    if added:
        warnings.append(
            f"{', '.join(added)}: not extracted when the text was counted; where the corpus has "
            "them, they were counted as plain text: count with --special-token to extract them"
        )
    longest = max(tokenizer.vocab.keys() - set(recipe.specials), key=len, default="")
    if len(longest) > _LONG_TOKEN and settings.model != "word_level":
        warnings.append(
            f"the longest token has {len(longest):,} characters, {shortened(longest)}: the text "
            "repeats it; max_token_length limits the length"
        )
    if learned.text_full:
        warnings.append(
            f"the vocabulary has {tokenizer.vocab_size:,} entries, not {settings.vocab_size:,}: "
            f"the merges have {MAX_TEXT:,} bytes in total, which is the limit; set "
            "max_token_length"
        )
    elif settings.model == "wordpiece" and is_nearly_characters(learned):
        warnings.append(
            f"{bytes_per_token(learned):.2f} bytes a token: nearly single characters, since the "
            "likelihood prefers pairs of rare ones; set a higher min_frequency (now "
            f"{settings.min_frequency:,}), or the model prefix_bpe, which is what Hugging Face "
            "calls WordPiece training"
        )
    elif tokenizer.vocab_size < settings.vocab_size:
        nouns = {"word_level": "word", "unigram": "substring", "mingram": "pair of pieces"}
        noun = nouns.get(settings.model, "pair")
        warnings.append(
            f"the vocabulary has {tokenizer.vocab_size:,} entries, not {settings.vocab_size:,}: "
            f"no other {noun} is frequent enough"
        )
    if settings.input is not None:
        warnings += summary.source_warnings(settings.input, counts.manifest.sources)
    return warnings + summary.loss_warnings(
        counts.manifest.lost, sum(size for _, size in counts.manifest.inputs)
    )

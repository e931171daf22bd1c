"""The decision where merges are learned: in this process, or in rounds over words on storage."""

from __future__ import annotations

from bpe_beam.errors import UsageError
from bpe_beam.jobs.train.plan import TrainingPlan
from bpe_beam.messages import format_bytes
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.training.merges.initial_vocabulary import check_distributed
from bpe_beam.training.merges.words import memory_needed, too_many
from bpe_beam.training.recipe import UnigramRecipe


def learns_in_rounds(plan: TrainingPlan) -> tuple[bool, str]:
    """Return whether merges are learned in rounds on the workers, and the reason.

    Raises:
        UsageError: The chosen way, or both ways, are impossible for this recipe or these words.
    """
    assert plan.counts is not None
    settings, manifest, recipe = plan.settings, plan.counts.manifest, plan.recipe
    wanted = settings.merge_rounds
    needed = memory_needed(manifest.word_bytes, manifest.unique_words, recipe)
    takes = f"{manifest.unique_words:,} unique words take about {format_bytes(needed)}"
    within = needed <= settings.driver_memory
    relation = "within" if within else "more than"
    where = f"{takes}, {relation} driver_memory {format_bytes(settings.driver_memory)}"
    beyond = too_many(
        recipe,
        manifest.word_bytes,
        manifest.unique_words,
        continued=plan.base_tokenizer is not None,
    )
    if within and beyond is not None:
        have = "have" if beyond[1] else "may have"
        where = (
            f"{manifest.unique_words:,} unique words of {manifest.word_bytes:,} bytes {have} "
            f"more than the {beyond[0]:,} symbols and words that one trainer can process"
        )
    megabytes = -(-needed // 10**6)
    refusal = _refusal_of_rounds(plan, within, megabytes)
    impossible = not within or (beyond is not None and beyond[1])
    fits = within and beyond is None
    # If rounds are refused, words that may fit are tried; the trainer counts symbols first.
    distributed = wanted == "distributed" or (
        wanted == "auto" and not fits and (impossible or refusal is None)
    )
    if distributed:
        if refusal is not None:
            problem = refusal.problem if fits else f"{refusal.problem} ({where})"
            raise UsageError(problem, refusal.parameters, refusal.remedy)
    elif impossible:
        ways = [] if within else [f"{{driver_memory}} {megabytes}MB"]
        ways += [] if refusal else ["{merge_rounds} distributed"]
        raise UsageError(where, remedy=f"give {', or '.join(ways or ['fewer words'])}")
    return distributed, "merge_rounds says so" if wanted != "auto" else where


def _refusal_of_rounds(plan: TrainingPlan, within: bool, megabytes: int) -> UsageError | None:
    """Return why the recipe cannot be trained in rounds; None if it can."""
    settings, counts = plan.settings, plan.counts
    assert counts is not None
    if counts.in_memory is not None:
        return UsageError("must not be distributed with counts in memory", ("merge_rounds",))
    if isinstance(plan.recipe, UnigramRecipe) and not within:
        return UsageError(
            "is too small for unigram, which finds its first pieces in this process",
            ("driver_memory",),
            f"give {{driver_memory}} {megabytes}MB, or use {{model}} mingram, whose first pieces "
            "merge rounds can find, or drop rare words with counts filter --min-count 2",
        )
    try:
        check_distributed(plan.recipe)
        require_reachable(settings.run.runner, counts=(counts.url,), output=(settings.folder,))
    except UsageError as error:
        return error
    return None

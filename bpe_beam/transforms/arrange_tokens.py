"""Documents of `WriteTokens` in a seeded order or in sequences, by the steps of `tokenize`.

The documents wait in shards of `work/documents`. They are measured, planned and written as
`workers/arrange/` does it for the command line, so that equal documents in equal order give equal
shards. What the steps of a run must agree on is in small files of `work/`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bpe_beam import json_structs
from bpe_beam.errors import DataError, require, require_between, require_choice
from bpe_beam.folders.receipts import WORK, Receipt, TaskFolder, side_by_side
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import limit_of
from bpe_beam.shards.shard_rows import (
    MAX_SEED,
    MAX_SEQUENCE_LENGTH,
    ArrangedCorpus,
    ArrangedPart,
    Arrangement,
    Shard,
    TokenlessSplit,
    added_sources,
)
from bpe_beam.transforms import metrics as counters
from bpe_beam.transforms.token_origin import WrittenTokens
from bpe_beam.transforms.tokens_folder import TokensFolder
from bpe_beam.workers.arrange import planning
from bpe_beam.workers.arrange.measure import measure_shard
from bpe_beam.workers.arrange.new_shard import write_new_shard
from bpe_beam.workers.arrange.regroup import regroup_blocks
from bpe_beam.workers.arrange.scatter import scatter_shard
from bpe_beam.workers.arrange.task import (
    LOST,
    RANKS,
    ArrangeTask,
    DocumentsShard,
    PartPlan,
    ShardGroups,
)


def arrangement_of(format_name: str, **options: Any) -> Arrangement | None:
    """Return the arrangement that options of `WriteTokens` ask for; None if they ask for none."""
    given = {name: value for name, value in options.items() if value is not None}
    length = given.get("sequence_length")
    limits = {
        "sequence_length": (1, MAX_SEQUENCE_LENGTH),
        "max_documents_per_sequence": (1, MAX_SEQUENCE_LENGTH),
        "shuffle_seed": (0, MAX_SEED),
        "shard_tokens": (1, 1 << 30),
    }
    for name, bounds in limits.items():
        if name in given:
            require_between(name, given[name], *bounds)
    needs = {
        "packing": (length is not None, "sequence_length"),
        "pad_token": (length is not None, "sequence_length"),
        "max_documents_per_sequence": (given.get("packing") == "best_fit", "packing='best_fit'"),
    }
    for name, (has_effect, other) in needs.items():
        require(name not in given or has_effect, f"has no effect without {other}", name)
    if not given:
        return None
    if length is not None:
        given.setdefault("packing", "concatenate")
        require_choice("packing", given["packing"], ("concatenate", "best_fit"))
    arrangement = Arrangement(**given)
    limit = limit_of([shard_format(format_name)])
    if limit is not None:
        tokens = arrangement.shard_tokens
        require(
            tokens <= limit.tokens,
            f"must be at most {limit.tokens:,} for shards of {format_name}, got {tokens:,}",
            "shard_tokens",
        )
    return arrangement


class _Documents(Struct, frozen=True):
    """The shards of documents, as the steps know them; in `work/documents.json`."""

    names: tuple[str, ...]
    documents: int
    corpus: ArrangedCorpus


class _Plan(Struct, frozen=True):
    """The plan of new shards; in `work/plan.json`."""

    parts: tuple[PartPlan, ...]
    groups: ShardGroups | None


class Arranged(NamedTuple):
    """The result: current and final names of files, rows of the manifest, and what it says."""

    moves: list[tuple[str, str]]
    rows: list[Shard | TokenlessSplit]
    part: ArrangedPart


class Arranger(NamedTuple):
    """Arranges the documents of a folder. Each step may run again, and writes the same bytes.

    Attributes:
        folder: The folder of receipts and new shards.
        documents: The folder of the shards of documents.
        documents_format: Their format.
        arrangement: The order and the sequences to make.
        format: The format of the new shards.
        tokens: What is known of the ids.
    """

    folder: TaskFolder
    documents: str
    documents_format: str
    arrangement: Arrangement
    format: str
    tokens: WrittenTokens

    @staticmethod
    def of(folder: TokensFolder, url: str, tokens: WrittenTokens) -> Arranger:
        """Return what arranges the documents of a folder into new shards below a URL."""
        assert folder.arrangement is not None
        return Arranger(
            TaskFolder(folder.storage, url, folder.number),
            folder.shards_url,
            folder.shards_format,
            folder.arrangement,
            folder.format,
            tokens,
        )

    def begin(self, shards: Iterable[Shard]) -> list[str]:
        """Return the tasks that measure shards of documents."""
        shards = list(shards)
        if not any(shard.tokens for shard in shards):
            raise DataError("WriteTokens: there is no token to make sequences of or to shuffle")
        corpus = ArrangedCorpus(
            sum(shard.text_bytes for shard in shards),
            sources=added_sources(shard.sources for shard in shards),
        )
        shards = [shard for shard in shards if shard.tokens]
        documents = sum(shard.documents for shard in shards)
        names = tuple(shard.name for shard in shards)
        self._write("documents", _Documents(names, documents, corpus))
        return [
            planning.to_element(DocumentsShard(index, name)) for index, name in enumerate(names)
        ]

    def measure(self, element: str, learned: str | None = None) -> None:
        measure_shard(self._task(learned), element)

    def plan(self, learned: str | None = None) -> list[str]:
        """Return the tasks that scatter shards of documents, all of which are measured."""
        task = self._task(learned)
        measured = self._measured(task)
        parts = measured.plans(measured.rows(self.folder))
        id_bytes = measured.totals[0].tokens * task.id_type.itemsize
        shards = [part.shards for part in parts]
        groups = planning.groups_of(self.folder.url, task.shards, shards, id_bytes)
        self._write("plan", _Plan(parts, groups))
        return [*map(planning.to_element, measured.shards(self._documents().names))]

    def scatter(self, element: str, learned: str | None = None) -> None:
        scatter_shard(self._planned(learned), element)

    def groups(self, learned: str | None = None) -> list[str]:
        """Return the tasks that regroup blocks, or one that does nothing if there are no groups."""
        groups = self._plan().groups
        return [""] if groups is None else [*map(str, range(len(groups.tasks())))]

    def regroup(self, element: str, learned: str | None = None) -> None:
        task = self._planned(learned)
        if task.groups is not None:
            tasks = planning.shard_tasks("scatter", task.shards)
            regroup_blocks(task, [], self._block_files(tasks), element)

    def new_shards(self, learned: str | None = None) -> list[str]:
        """Return the tasks that write new shards, when all their blocks are written."""
        return [planning.to_element(new) for _, new in planning.new_shards(self._plan().parts)]

    def write(self, element: str, learned: str | None = None) -> None:
        """Write a new shard to `work/`."""
        task = self._planned(learned)
        tasks = planning.shard_tasks("scatter", task.shards)
        tasks = tasks if task.groups is None else task.groups.tasks()
        counters.record(write_new_shard(task, [], self._block_files(tasks), element))

    def finish(self, learned: str | None = None) -> Arranged:
        """Return the new shards, when all are written."""
        (part,) = self._plan().parts
        task = self._task(learned)
        total = self._measured(task).totals[0]
        receipts = self._receipts([part.task(shard) for shard in range(part.shards)])
        numbered = planning.numbered_shards(receipts, total)
        if isinstance(numbered, int):
            raise planning.other_tokens(self.folder.url, numbered, total)
        described = ArrangedPart(
            settings=self.arrangement,
            corpus=self._documents().corpus,
            documents=total.documents,
            tokens=total.tokens,
            padding=numbered.padding,
        )
        moves = [move for each in numbered.publications for move in each.moves]
        return Arranged(moves, numbered.rows, described)

    def run(self, shards: Iterable[Shard], learned: str | None = None) -> Arranged:
        """Do all steps one after the other."""
        for element in self.begin(shards):
            self.measure(element, learned)
        for element in self.plan(learned):
            self.scatter(element, learned)
        for element in self.groups():
            self.regroup(element, learned)
        for element in self.new_shards():
            self.write(element, learned)
        return self.finish(learned)

    def _write(self, name: str, value: Struct) -> None:
        data = msgspec.json.encode(value)
        self.folder.storage.write_bytes(self.folder.path(f"{WORK}/{name}.json"), data)

    def _read(self, name: str) -> bytes:
        return self.folder.storage.read_bytes(self.folder.path(f"{WORK}/{name}.json"))

    def _block_files(self, tasks: Iterable[str]) -> list[str]:
        return [self.folder.path(f"{WORK}/{name}.bin") for name in tasks]

    def _documents(self) -> _Documents:
        return json_structs.decode(self._read("documents"), _Documents)

    def _plan(self) -> _Plan:
        return json_structs.decode(self._read("plan"), _Plan)

    def _receipts(self, tasks: Iterable[str]) -> list[Receipt]:
        receipts = side_by_side(self.folder.read_receipt, tasks)
        known = [receipt for receipt in receipts if receipt is not None]
        if len(known) < len(receipts):
            raise DataError(f"WriteTokens: {LOST}")
        return known

    def _measured(self, task: ArrangeTask) -> planning.Measured:
        receipts = self._receipts(planning.shard_tasks("measure", task.shards))
        return planning.Measured(task, receipts)

    def _task(self, learned: str | None) -> ArrangeTask:
        documents, facts = self._documents(), self.tokens.facts(learned)
        return ArrangeTask(
            folder=self.folder,
            documents=self.documents,
            documents_format=self.documents_format,
            made_of="",
            shards=len(documents.names),
            count=documents.documents,
            arrangement=self.arrangement,
            pad=facts.pad,
            shard_format=self.format,
            vocab_size=facts.vocab_size,
            origin=replace(facts.origin, sequence_length=self.arrangement.sequence_length),
            ranks=self.folder.path(f"{WORK}/{RANKS}"),
            encoding=self.tokens.encoding,
            by_source=False,
        )

    def _planned(self, learned: str | None) -> ArrangeTask:
        plan = self._plan()
        return dataclasses.replace(self._task(learned), parts=plan.parts, groups=plan.groups)


class ArrangeShards(beam.PTransform):
    """Arranges shards of documents: their rows in, under one key, and the manifest's URL out.

    Args:
        arranger: What the steps do.
        rows_of: A function that returns the shards of documents by their gathered rows.
        finish: A function that writes the manifest by the result, and returns its URL.
        learned: The side input of a tokenizer, if it is one.
    """

    def __init__(
        self,
        arranger: Arranger,
        rows_of: Callable[[Iterable[bytes]], Iterable[Shard]],
        finish: Callable[[str | None], str],
        learned: list[beam.pvalue.AsSideInput],
    ) -> None:
        super().__init__()
        self.arranger = arranger
        self.rows_of = rows_of
        self.finish = finish
        self.learned = learned

    def expand(self, rows: beam.pvalue.PCollection) -> beam.pvalue.PCollection:
        arranger, learned = self.arranger, self.learned
        begin = beam.FlatMap(_begin, arranger, self.rows_of)
        steps: tuple[tuple[str, beam.ParDo, Callable[[str, str | None], None]], ...] = (
            ("Measure", begin, arranger.measure),
            ("Scatter", beam.FlatMap(_after, arranger.plan, *learned), arranger.scatter),
            ("Regroup", beam.FlatMap(_after, arranger.groups), arranger.regroup),
            ("WriteNew", beam.FlatMap(_after, arranger.new_shards), arranger.write),
        )
        for label, plan, do in steps:
            planned = plan.with_output_types(tuple[int, str])
            done = beam.FlatMap(_each, do, *learned).with_output_types(tuple[int, bytes])
            rows = (
                rows
                | f"GatherFor{label}" >> beam.GroupByKey()
                | f"Plan{label}" >> planned
                | f"Spread{label}" >> beam.GroupByKey()
                | f"{label}Shard" >> done
            )
        end = beam.FlatMap(_finish, self.finish, *learned).with_output_types(str)
        return rows | "GatherNewShards" >> beam.GroupByKey() | "WriteManifest" >> end


def _begin(
    element: tuple[int, Iterable[bytes]],
    arranger: Arranger,
    rows_of: Callable[[Iterable[bytes]], Iterable[Shard]],
) -> Iterator[tuple[int, str]]:
    yield from enumerate(arranger.begin(rows_of(element[1])))


def _after(
    element: tuple[int, Iterable[bytes]],
    plan: Callable[[str | None], list[str]],
    learned: str | None = None,
) -> Iterator[tuple[int, str]]:
    """Yield the tasks of a step when all tasks of the step before are done."""
    yield from enumerate(plan(learned))


def _each(
    element: tuple[int, Iterable[str]],
    do: Callable[[str, str | None], None],
    learned: str | None = None,
) -> Iterator[tuple[int, bytes]]:
    """Do a task, whatever the runner repeats or doubles."""
    for task in sorted(set(element[1])):
        do(task, learned)
    yield 0, b""


def _finish(
    element: tuple[int, Iterable[bytes]],
    finish: Callable[[str | None], str],
    learned: str | None = None,
) -> Iterator[str]:
    yield finish(learned)

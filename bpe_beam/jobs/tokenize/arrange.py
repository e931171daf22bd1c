"""Tokenized documents in a seeded order, in sequences, and divided for validation.

The documents are tokenized first, into shards of a folder within `work/`: a job of its own, which
resumes by itself. Then its shards are measured, the driver plans, and new shards are written; see
`workers/arrange/`. With a validation share the output has two folders of shards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, Struct, to_builtins
from numpy.typing import NDArray

from bpe_beam.corpus.plan import Plan
from bpe_beam.engines.run import run_steps
from bpe_beam.engines.steps import Collection, Engine, Steps
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import (
    MANIFEST_FILE,
    PARTS,
    REJECTS,
    SHARDS_TOKENIZER_FILE,
    TOKEN_COUNTS_FILE,
)
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import (
    DOCUMENTS,
    OutputFolder,
    RestoredFolder,
    RestoredTask,
    Takeover,
    recorded_job,
)
from bpe_beam.folders.receipts import WORK, Publication, Receipt
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.jobs.input_folders import inside, restored_files, write_small_files
from bpe_beam.progress import Progress
from bpe_beam.settings.tokenize import ArrangementSettings, TokenizeSettings
from bpe_beam.shards.arrangement import Arrangement
from bpe_beam.shards.formats import LABELLED_FORMAT, PLAIN_FORMAT, shard_format
from bpe_beam.shards.formats.interface import ShardOrigin
from bpe_beam.shards.manifest import (
    NO_PLAN,
    Manifest,
    Rejects,
    index_names,
    read_manifest,
    with_files,
)
from bpe_beam.shards.numbering import number_shards, shard_files
from bpe_beam.shards.packing import plan_best_fit
from bpe_beam.shards.shard_rows import (
    NO_CHANGES,
    ArrangedCorpus,
    ArrangedPart,
    PartTexts,
    Shard,
    TokenlessSplit,
    Totals,
    added_sources,
)
from bpe_beam.shards.token_counts import read_token_counts, write_token_counts
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.arrange.measure import measure_shard, part_task, texts_name, write_ranks
from bpe_beam.workers.arrange.new_shard import write_new_shard
from bpe_beam.workers.arrange.scatter import scatter_shard
from bpe_beam.workers.arrange.task import (
    RANKS,
    STAGE,
    ArrangeTask,
    BlockFile,
    BlockFileStats,
    DocumentsShard,
    MeasureStats,
    NewShard,
    NewShardStats,
    PartPlan,
    PartSums,
)
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.document_hashes import overlap_of
from bpe_beam.workers.measured import Measured
from bpe_beam.workers.split_task import task_name
from bpe_beam.workers.token_counter import added_up, id_columns, token_counts_name

_KINDS = ((PLAIN_FORMAT, False), (LABELLED_FORMAT, False), (LABELLED_FORMAT, True))
"""The formats of tokenized documents, and whether with hashes; each has what those before have."""

_TAKEOVER = Takeover("arrangement", ("measure", "scatter"))
"""Until a new shard is written, another arrangement of the same documents goes on with them."""


@dataclass(frozen=True)
class ArrangeJob:
    """What the job needs to know.

    Attributes:
        settings: The settings of `tokenize`.
        storage: The storage client.
        identity: What the output depends on but for the arrangement, for `__job`.
        tokenizer: The tokenizer.
        encoding: How documents become ids.
        origin: What makes the tokens.
        plan: The plan of the corpus.
        tokenize: Tokenizes the documents into a folder of shards, if asked for with the hashes that
            decide on their parts.
        progress: Shows the progress.
    """

    settings: TokenizeSettings
    storage: Storage
    identity: Mapping[str, Any]
    tokenizer: Tokenizer
    encoding: Encoding
    origin: ShardOrigin
    plan: Plan
    tokenize: Callable[[TokenizeSettings, bool], Any]
    progress: Progress

    @property
    def arrangement(self) -> Arrangement:
        """What is to be made."""
        found = self.settings.arranging.arrangement
        assert found is not None
        return found


class Arranged(Struct, frozen=True):
    """What was made.

    Attributes:
        was_finished_before: Whether an earlier run had finished it.
        kept: The number of new shards that an earlier run had finished.
        tokenized: The summary of the tokenization; None if an earlier run had finished all.
        parts: What was made of each part, or would be, without `dry_run`.
        manifests: The manifest of each part; none with `dry_run`.
        units: The number of documents, or of sequences, of each part.
    """

    was_finished_before: bool
    kept: int
    tokenized: Any
    parts: tuple[ArrangedPart, ...]
    manifests: tuple[Manifest, ...]
    units: tuple[int, ...]


def arrange(job: ArrangeJob) -> Arranged:
    """Tokenize documents and arrange them."""
    settings, storage, arrangement = job.settings, job.storage, job.arrangement
    parts = arrangement.parts
    pad = arrangement.pad_token
    pad_id = None if pad is None else _id_of(job.tokenizer, pad)
    final = inside(parts[0], MANIFEST_FILE)
    names = (SHARDS_TOKENIZER_FILE, TOKEN_COUNTS_FILE, MANIFEST_FILE, *index_names(settings.format))
    folder = OutputFolder.claim(
        storage,
        settings.output,
        {"job": "tokenize", **job.identity, "arrangement": to_builtins(arrangement)},
        [
            *(inside(part, name) for part in parts for name in names),
            f"{WORK}/{RANKS}",
            *(inside(parts[0], name) for name in corpus_input.rejects_names(job.plan)),
        ],
        settings.run.overwrite,
        final=final,
        restore=partial(_restore, storage, settings.output, parts),
        takeover=_TAKEOVER,
        warn=job.progress.warn,
    )
    if folder.finished:
        manifests = _manifests(storage, settings.output, parts)
        for part, manifest in zip(parts, manifests, strict=True):
            write_small_files(folder, manifest, job.tokenizer.json_bytes, part)
        return _finished(True, 0, None, manifests)
    documents = folder.path(f"{WORK}/{DOCUMENTS}")
    documents_format, hashes = _kind_of_documents(storage, settings, documents)
    inner = replace(
        settings,
        output=documents,
        formats=(documents_format,),
        columns=(),
        arranging=ArrangementSettings(),
    )
    tokenized = job.tokenize(inner, hashes)
    return _Arranging(job, folder, documents, pad_id).run(tokenized)


def _kind_of_documents(
    storage: Storage, settings: TokenizeSettings, documents: str
) -> tuple[str, bool]:
    """Return the format of the tokenized documents, and whether they have hashes.

    They have what is needed, or what those of another arrangement have already.
    """
    needed = int(shard_format(settings.format).labelled_writer is not None)
    if settings.arranging.validation_share is not None:
        needed = 2
    there = recorded_job(storage, documents)
    if there is not None:
        kind = there.settings.get("format"), "hashes" in there.settings
        needed = max([needed, *(at for at, each in enumerate(_KINDS) if each == kind)])
    return _KINDS[needed]


class _Arranging:
    """The steps from the shards of documents to the new shards."""

    def __init__(
        self, job: ArrangeJob, folder: OutputFolder, documents: str, pad_id: int | None
    ) -> None:
        self._job = job
        self._folder = folder
        self._old = read_manifest(job.storage, documents)
        self._documents = documents
        # Of each part, if documents are divided: its texts, and the files of its token counts.
        self._texts: list[PartTexts] = []
        self._token_counts: list[tuple[FileInfo, ...]] = []
        self._overlap: int | None = None
        self._made_of = hashlib.sha256(self._old.to_bytes()).hexdigest()
        self._shards = [
            DocumentsShard(index, shard.name) for index, shard in enumerate(self._old.shards)
        ]
        settings = job.settings
        self._task = ArrangeTask(
            folder=folder.for_workers(),
            documents=documents,
            documents_format=self._old.format,
            made_of=self._made_of,
            shards=len(self._shards),
            count=self._old.totals.documents,
            arrangement=job.arrangement,
            pad=pad_id,
            shard_format=settings.format,
            vocab_size=self._old.tokenizer.vocab_size,
            origin=msgspec.structs.replace(
                job.origin, sequence_length=job.arrangement.sequence_length
            ),
            ranks=folder.path(f"{WORK}/{RANKS}"),
            encoding=job.encoding.kept_at(
                job.storage, job.storage.join(documents, SHARDS_TOKENIZER_FILE)
            ),
            by_source=self._old.sources is not None,
        )

    def run(self, tokenized: Any) -> Arranged:
        """Measure, plan and write."""
        sums = self._measure()
        totals = [
            PartSums(sum(each.documents for each in part), sum(each.tokens for each in part))
            for part in zip(*sums, strict=True)
        ]
        self._refuse_empty(totals)
        units = self._units(totals)
        if self._job.settings.arranging.dry_run:
            parts = zip(self._job.arrangement.parts, totals, strict=True)
            forecast = tuple(self._part(name, total, 0) for name, total in parts)
            return Arranged(False, 0, tokenized, forecast, (), tuple(units))
        plans = tuple(
            self._plan(number, count, [each[number] for each in sums])
            for number, count in enumerate(units)
        )
        kept = self._write(sums, plans)
        manifests = self._finish(plans, totals)
        return _finished(False, kept, tokenized, manifests)

    def _plan(self, part: int, units: int, measured: Sequence[PartSums]) -> PartPlan:
        """Return the plan of a part, whose new shards have about `shard_tokens` tokens each."""
        arrangement = self._job.arrangement
        name = arrangement.parts[part]
        tokens = sum(each.tokens for each in measured)
        shards = max(1, min(units, -(-tokens // arrangement.shard_tokens)))
        if arrangement.sequence_length is None and arrangement.shuffle_seed is None:
            # Long documents may follow each other.
            return PartPlan.by_tokens(name, measured, shards)
        return PartPlan.even(name, units, shards)

    def _refuse_empty(self, totals: Sequence[PartSums]) -> None:
        for name, total in zip(self._job.arrangement.parts, totals, strict=True):
            if not total.tokens:
                raise DataError(
                    f"no token of {sum(each.documents for each in totals):,} documents is for "
                    f"{name}, with a validation share of {self._job.arrangement.validation_share}",
                    remedy="give another {validation_share}",
                )

    def _measure(self) -> list[tuple[PartSums, ...]]:
        """Return the sums of each part, of every shard of documents."""
        tasks = [
            task_name("measure", index, len(self._shards)) for index in range(len(self._shards))
        ]
        divided = self._job.arrangement.validation_share is not None
        parts = self._job.arrangement.parts if divided else ()
        self._folder.expect([f"{WORK}/{name}.bin" for name in tasks])
        self._folder.expect(f"{WORK}/{texts_name(name)}" for name in tasks)
        self._folder.expect(token_counts_name(part_task(n, part)) for n in tasks for part in parts)
        left = self._left(tasks, MeasureStats)
        elements = [_json(self._shards[index]) for index in left]

        def steps(task: ArrangeTask) -> Steps:
            return lambda engine: engine.run(
                "MeasureShard",
                partial(measure_shard, _unsynced(task)),
                engine.tasks("Documents", elements),
                str,
            )

        if left:
            self._run(steps, len(left), 0)
        receipts = self._folder.all_receipts(tasks)
        stats = [receipts[name].read_stats(MeasureStats) for name in tasks]
        if self._job.arrangement.is_best_fit:
            self._ranks = [receipts[name].files[0] for name in tasks]
        if divided:
            self._texts = [
                _added_texts(part) for part in zip(*(s.texts for s in stats), strict=True)
            ]
            # They are the last files of a receipt, in the order of the parts.
            files = [receipts[name].files[-len(parts) :] for name in tasks]
            self._token_counts = [*zip(*files, strict=True)]
            if self._task.counts_overlap:
                hashes = [self._hashes_of(receipts[name].files[-1 - len(parts)]) for name in tasks]
                self._overlap = overlap_of(np.concatenate(hashes), self._task.count)
        return [each.parts for each in stats]

    def _hashes_of(self, file: FileInfo) -> NDArray[np.uint64]:
        """Return the hashes of texts in a file, see `sampled_texts`."""
        data = read_hashed(self._job.storage, self._folder.path(file.name), file.sha256)
        return np.frombuffer(data, "<u8").astype(np.uint64)

    def _units(self, totals: Sequence[PartSums]) -> list[int]:
        """Return the number of documents, or of sequences, of each part."""
        arrangement = self._job.arrangement
        length = arrangement.sequence_length
        if length is None:
            return [total.documents for total in totals]
        if not arrangement.is_best_fit:
            return [-(-total.tokens // length) for total in totals]
        with self._job.storage.create(self._task.ranks) as file:
            total = write_ranks(file, self._histograms(), len(totals) * (length + 1))
        most = arrangement.max_documents_per_sequence
        return [plan_best_fit(each, most).sequences for each in np.split(total, len(totals))]

    def _histograms(self) -> Iterator[bytes]:
        for file in self._ranks:
            yield read_hashed(self._job.storage, self._folder.path(file.name), file.sha256)

    def _part(self, name: str, total: PartSums, padding: int) -> ArrangedPart:
        """Return what a manifest says of the shards of a part."""
        old = self._old
        corpus = ArrangedCorpus(
            old.totals.text_bytes,
            old.rejects.by_reason,
            old.rejects.lost,
            old.sources,
            None if old.changes == NO_CHANGES else old.changes,
        )
        texts = self._texts[self._job.arrangement.parts.index(name)] if self._texts else None
        return ArrangedPart(
            settings=self._job.arrangement,
            corpus=corpus,
            documents=total.documents,
            tokens=total.tokens,
            padding=padding,
            part=name,
            texts=texts,
            overlap=self._overlap if name == PARTS[1] else None,
        )

    def _write(self, sums: list[tuple[PartSums, ...]], plans: tuple[PartPlan, ...]) -> int:
        """Write the new shards; return how many an earlier run had written."""
        folder, count = self._folder, len(self._shards)
        suffixes = shard_format(self._task.shard_format).suffixes
        scatter_names = [task_name("scatter", index, count) for index in range(count)]
        new = [
            (plan.task(shard), NewShard(number, shard))
            for number, plan in enumerate(plans)
            for shard in range(plan.shards)
        ]
        folder.expect(f"{WORK}/{name}.bin" for name in scatter_names)
        folder.expect(f"{WORK}/{name}{suffix}" for name, _ in new for suffix in suffixes)
        left = self._left([name for name, _ in new], NewShardStats)
        if not left:
            return len(new)
        scatter = self._left(scatter_names, BlockFileStats)
        elements = []
        before = [PartSums(0, 0) for _ in plans]
        for index, found in enumerate(sums):
            if index in scatter:
                shard = msgspec.structs.replace(self._shards[index], before=tuple(before))
                elements.append(_json(shard))
            before = [
                PartSums(old.documents + add.documents, old.tokens + add.tokens)
                for old, add in zip(before, found, strict=True)
            ]
        known = [
            self._block_file(receipt)
            for name in scatter_names
            if (receipt := folder.receipt(name)) is not None
        ]

        def steps(task: ArrangeTask) -> Steps:
            task = replace(task, parts=plans)

            def described(engine: Engine) -> Collection:
                scattered = engine.run(
                    "ScatterShard",
                    partial(scatter_shard, _unsynced(task)),
                    engine.tasks("Documents", elements),
                    str,
                )
                return engine.run(
                    "WriteNewShard",
                    partial(write_new_shard, task, known),
                    engine.tasks("NewShards", [_json(new[index][1]) for index in left]),
                    str,
                    scattered,
                )

            return described

        self._run(steps, max(len(elements), len(left)), 2 * self._old.totals.tokens)
        folder.all_receipts([name for name, _ in new])
        return len(new) - len(left)

    def _block_file(self, receipt: Receipt) -> str:
        stats = receipt.read_stats(BlockFileStats)
        url = self._folder.path(receipt.files[0].name)
        return _json(BlockFile(url, stats.table_at))

    def _left(self, tasks: Sequence[str], struct: type[Any]) -> list[int]:
        """Return the numbers of the tasks that are left, and forget receipts that do not fit."""
        left, unfit = [], []
        for index, name in enumerate(tasks):
            receipt = self._folder.receipt(name)
            fits = receipt is not None and receipt.fits(struct)
            if receipt is None or not fits or receipt.stats.get("made_of") != self._made_of:
                left.append(index)
                unfit += [receipt] if receipt is not None else []
        self._folder.forget(unfit)
        return left

    def _run(self, steps: Callable[[ArrangeTask], Steps], tasks: int, tokens: int) -> None:
        """Run steps in a folder of their own; `tokens` is what they report, or 0.

        They read each token twice.
        """
        folder, job = self._folder, self._job
        run = folder.new_run()
        task = replace(self._task, folder=run.for_workers())
        with job.progress.stage(STAGE, tokens, "tokens read") if tokens else nullcontext():
            run_steps(
                job.settings.run,
                "Arrange",
                steps(task),
                tasks,
                Measured(),
                lambda: None,
                min_ram="1GB",
            )
        folder.require_ours()
        folder.take(run, all_files=False)

    def _finish(
        self, plans: tuple[PartPlan, ...], totals: Sequence[PartSums]
    ) -> tuple[Manifest, ...]:
        """Give the new shards their final names, and write the manifests."""
        folder, storage = self._folder, self._job.storage
        publications: list[Publication] = []
        made: list[Manifest] = []
        for plan, total in zip(plans, totals, strict=True):
            names = [plan.task(shard) for shard in range(plan.shards)]
            receipts = folder.all_receipts(names)
            found = [receipts[name] for name in names]
            stats = [receipt.read_stats(NewShardStats) for receipt in found]
            self._refuse_lost(total, found, stats)
            numbered = number_shards(found, [each.tokens for each in stats])
            made.append(self._manifest(plan, total, numbered, stats))
            publications += [_moved_into(plan.name, each) for each in numbered]
            storage.make_folder(folder.path(plan.name) if plan.name else folder.url)
        folder.publish(publications)
        self._copy_rejects()
        tokenizer, counts = self._job.tokenizer.json_bytes, self._write_token_counts(made)
        for number, plan in enumerate(plans):
            write_small_files(folder, made[number], tokenizer, plan.name)
            made[number] = with_files(
                made[number], tokenizer, counts[number], job=folder.fingerprint
            )
        for plan, manifest in zip(plans[1:], made[1:], strict=True):
            url = folder.path(inside(plan.name, MANIFEST_FILE))
            storage.write_bytes(url, manifest.to_bytes())
        folder.finish(inside(plans[0].name, MANIFEST_FILE), made[0].to_bytes())
        return tuple(made)

    def _refuse_lost(
        self, total: PartSums, receipts: Sequence[Receipt], stats: Sequence[NewShardStats]
    ) -> None:
        """Compare the tokens of a part's new shards with those of its documents."""
        found = sum(each.tokens - each.padding for each in stats)
        if found != total.tokens:
            self._folder.forget(receipts)
            raise DataError(
                f"{self._folder.url}: the new shards have {found:,} tokens of documents; expected "
                f"{total.tokens:,}: the runner lost a result, or a file of this run was changed; "
                "run this job again"
            )

    def _manifest(
        self,
        plan: PartPlan,
        total: PartSums,
        publications: Sequence[Publication],
        stats: Sequence[NewShardStats],
    ) -> Manifest:
        shards: list[Shard] = []
        tokenless: list[TokenlessSplit] = []
        for index, (publication, each) in enumerate(zip(publications, stats, strict=True)):
            files = shard_files(publication.receipt)
            row: dict[str, Any] = {
                "split": index,
                "slices": (),
                "documents": each.rows,
                "text_bytes": 0,
                "rejects": 0,
            }
            if files:
                name = files[0].name.partition(".")[0]
                shards.append(Shard(name=name, tokens=each.tokens, files=files, **row))
            else:
                tokenless.append(TokenlessSplit(**row))
        rejects = Rejects({}, ())
        if plan.name == self._job.arrangement.parts[0] and self._old.rejects.files:
            # They are of the whole corpus: no shard has them.
            rejects = self._old.rejects
            tokenless.append(TokenlessSplit(len(stats), (), 0, 0, sum(rejects.by_reason.values())))
        return msgspec.structs.replace(
            self._old,
            format=self._task.shard_format,
            plan=NO_PLAN,
            shards=tuple(shards),
            tokenless=tuple(tokenless),
            totals=Totals.of(shards, tokenless),
            rejects=rejects,
            arranged=self._part(plan.name, total, sum(each.padding for each in stats)),
            columns=self._job.settings.columns or UNSET,
        )

    def _write_token_counts(self, manifests: Sequence[Manifest]) -> list[FileInfo]:
        """Write how often each id occurs in the documents of each part."""
        storage, tokenizer = self._job.storage, self._job.tokenizer
        fingerprint, columns = tokenizer.fingerprint, id_columns(tokenizer)
        written = []
        for number, (part, manifest) in enumerate(
            zip(self._job.arrangement.parts, manifests, strict=True)
        ):
            tokens = manifest.tokens_by_source
            if self._token_counts:
                sources = None if None in tokens else [name for name in tokens if name is not None]
                files = self._token_counts[number]
                counts = added_up(self._folder, files, columns, sources)
            else:
                file = self._old.token_counts
                assert file is not None  # of `tokenize`
                counts = read_token_counts(storage, self._documents, fingerprint, tokens, file)
            folder = self._folder.path(part) if part else self._folder.url
            written.append(write_token_counts(storage, folder, fingerprint, counts))
        return written

    def _copy_rejects(self) -> None:
        storage, folder = self._job.storage, self._folder
        part = self._job.arrangement.parts[0]
        if self._old.rejects.files:
            storage.make_folder(folder.path(inside(part, REJECTS)))
        for file in self._old.rejects.files:
            url = storage.join(self._documents, *file.name.split("/"))
            data = read_hashed(storage, url, file.sha256)
            storage.write_bytes(folder.path(inside(part, file.name)), data)


def _added_texts(parts: Sequence[PartTexts]) -> PartTexts:
    """Return the sums over the shards of documents."""
    sources = added_sources(each.sources for each in parts)
    return PartTexts(sum(each.text_bytes for each in parts), sources)


def _unsynced(task: ArrangeTask) -> ArrangeTask:
    """Return the same task for steps whose files are temporary."""
    folder = task.folder
    return replace(task, folder=replace(folder, storage=folder.storage.unsynced))


def _finished(before: bool, kept: int, tokenized: Any, manifests: tuple[Manifest, ...]) -> Arranged:
    parts = tuple(each.arranged for each in manifests if isinstance(each.arranged, ArrangedPart))
    units = tuple(each.totals.documents for each in manifests)
    return Arranged(before, kept, tokenized, parts, manifests, units)


def _moved_into(part: str, publication: Publication) -> Publication:
    """Return a publication whose final names are in the folder of a part."""
    moves = tuple((name, inside(part, final)) for name, final in publication.moves)
    files = _files_inside(part, publication.receipt.files)
    return Publication(msgspec.structs.replace(publication.receipt, files=files), moves)


def _files_inside(part: str, files: Sequence[FileInfo]) -> tuple[FileInfo, ...]:
    return tuple(msgspec.structs.replace(file, name=inside(part, file.name)) for file in files)


def _manifests(storage: Storage, output: str, parts: Sequence[str]) -> tuple[Manifest, ...]:
    folders = [storage.join(output, part) if part else output for part in parts]
    return tuple(read_manifest(storage, folder) for folder in folders)


def _restore(storage: Storage, output: str, parts: Sequence[str], _: bytes) -> RestoredFolder:
    """Return a finished folder: all tasks run again if a file is missing or changed."""
    tasks: dict[str, RestoredTask] = {}
    jobs = set()
    for part in parts:
        url = storage.join(output, *inside(part, MANIFEST_FILE).split("/"))
        # Not by `read_manifest`, which refuses a folder whose manifest is missing.
        manifest = Manifest.from_bytes(storage.read_bytes(url), redact(url))
        jobs.add(manifest.job_fingerprint)
        tasks |= restored_files(manifest, part)
        tasks[inside(part, REJECTS)] = RestoredTask(
            _files_inside(part, manifest.rejects.files), None
        )
        for shard in manifest.shards:
            tasks[inside(part, shard.name)] = RestoredTask(_files_inside(part, shard.files), None)
    # Manifests of several jobs are of none.
    return RestoredFolder((jobs.pop() or None) if len(jobs) == 1 else None, tasks)


def _id_of(tokenizer: Tokenizer, token: str) -> int:
    found = tokenizer.token_to_id(token)
    if found is None:
        raise UsageError(f"must be a token of the tokenizer, got {token!r}", ("pad_token",))
    return found


def _json(value: Struct) -> str:
    return msgspec.json.encode(value).decode()

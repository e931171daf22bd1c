"""The steps of a mixture, from documents to new shards; see `workers/mix/`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from msgspec import UNSET, json, structs
from numpy.typing import NDArray

from bpe_beam.engines.steps import Collection, Engine, Steps
from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import SHARDS_TOKENIZER_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.folders.receipts import WORK, Receipt, TaskFolder
from bpe_beam.jobs.arranged_shards import ArrangedShards, added_texts, unsynced
from bpe_beam.progress import Progress
from bpe_beam.settings.mix import MixSettings
from bpe_beam.shards import mixture_tables as tables
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.manifest import NO_PLAN, Manifest, Rejects
from bpe_beam.shards.mixture import MixedSource, Mixture, MixtureOptions, SourcePart
from bpe_beam.shards.mixture_documents import choose_identities
from bpe_beam.shards.mixture_folders import MixedFolders
from bpe_beam.shards.shard_rows import ArrangedPart, Arrangement, PartTexts
from bpe_beam.shards.token_counts import write_token_counts
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.arrange import planning
from bpe_beam.workers.arrange.measure import part_task
from bpe_beam.workers.arrange.task import LOST, RANKS, STAGE, ArrangeTask, MeasureStats, PartSums
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.mix import index, place, select
from bpe_beam.workers.mix import task as tasks
from bpe_beam.workers.split_task import task_name
from bpe_beam.workers.token_counter import added_up, id_columns, token_counts_name
from bpe_beam.workers.tokenize_split import origin_of

_SMALL_PARTS = 64  # at most so many groups or ranges have a quarter of `tasks.RECORDS`


class MixSteps(ArrangedShards):
    """Runs the steps, on the engine of the settings."""

    def __init__(
        self,
        settings: MixSettings,
        inputs: MixedFolders,
        parts: dict[str, SourcePart],
        options: MixtureOptions,
        format_name: str,
        folder: OutputFolder,
        tokenizer: Tokenizer,
        progress: Progress,
    ) -> None:
        first, storage, arrangement = inputs.first, folder.storage, settings.arranging.arrangement
        self._parts, self._inputs = parts, inputs
        self._options = options
        urls = [each.url for each in inputs.folders]
        encoding = Encoding.of(tokenizer, **first.encoding)
        pad = arrangement.pad_token
        count = sum(manifest.totals.documents for manifest in inputs.manifests)
        # With other sizes of groups and ranges, files of earlier tasks have other blocks.
        made_of = [str((tasks.RECORDS, _SMALL_PARTS)).encode()]
        made_of += [each.to_bytes() for each in inputs.manifests]
        shards = [
            (number, shard)
            for number, manifest in enumerate(inputs.manifests)
            for shard in manifest.shards
        ]
        self._shards = [
            tasks.InputShard(at, number, shard.name, shard.files)
            for at, (number, shard) in enumerate(shards)
        ]
        self._tokens = [shard.tokens for _, shard in shards]
        arrange = ArrangeTask(
            folder=folder.for_workers(),
            documents=urls[0],
            documents_format=first.format,
            made_of=planning.made_of(made_of),
            shards=len(self._shards),
            count=count,
            arrangement=arrangement,
            pad=None if pad is None else tokenizer.token_to_id(pad),
            shard_format=format_name,
            vocab_size=first.tokenizer.vocab_size,
            origin=structs.replace(
                origin_of(encoding, settings.columns), sequence_length=arrangement.sequence_length
            ),
            ranks=folder.path(f"{WORK}/{RANKS}"),
            encoding=encoding.kept_at(storage, storage.join(urls[0], SHARDS_TOKENIZER_FILE)),
            by_source=True,
            whole_sequences=True,
        )
        super().__init__(settings.run, folder, arrange, first, tokenizer, progress)
        self._mix = tasks.MixTask(
            arrange=arrange,
            folders=tuple(inputs.folders),
            names=tuple(parts),
            by_id=(),
            seed=options.seed or 0,
            duplicates=options.duplicates or "keep",
            groups=_parts_of(count),
        )

    @property
    def arrangement(self) -> Arrangement:
        """The order and the sequences to make."""
        return self._task.arrangement

    # ---- identities and totals ----

    def number(self) -> None:
        """Number the documents by their identities, and learn the totals of each source."""
        choose_identities(self._inputs.folders, self._mix.names, self._options, self._number_groups)
        self._stats = [each.read_stats(tasks.GroupStats) for each in self._groups]
        # int64[2 parts, sources, (documents, tokens)]
        self.sums = np.sum([np.array(each.sums, np.int64) for each in self._stats], axis=0)
        tokens = dict(zip(self._mix.names, self.sums[0, :, 1].tolist(), strict=True))
        # The numbers of the manifests were enough.
        tables.refuse_too_many(
            self._parts, tokens, " without duplicates and documents for validation"
        )
        ranges = tuple(tables.SourceRange(part, tokens[n]) for n, part in self._parts.items())
        self._mix = replace(self._mix, ranges=ranges)

    def _number_groups(self, by_id: tuple[bool, ...]) -> set[int]:
        """Number all groups; return the sources with documents without an id of their own."""
        identities = "tokens" if self._mix.by_id else "ids"  # this is the second time, or the first
        self._mix = mix = replace(self._mix, by_id=by_id, identities=identities)
        folder = self._folder
        shards = _names(f"index-{mix.identities}", len(self._shards))
        groups = _names(f"numbered-{mix.identities}", mix.groups)
        folder.expect(f"{WORK}/{name}.bin" for name in (*shards, *groups))
        remaining, to_index = self.remaining(groups), self.remaining(shards)
        known = self.files_of(shards)

        def steps(mix: tasks.MixTask, engine: Engine) -> Collection:
            elements = [_element(self._shards[number]) for number in to_index]
            indexed = engine.run(
                "IndexShard",
                partial(index.index_shard, mix),
                engine.tasks("Shards", elements),
                str,
            )
            return engine.run(
                "NumberGroup",
                partial(index.number_group, mix, known),
                engine.tasks("Groups", [_element(tasks.Group(number)) for number in remaining]),
                str,
                indexed,
            )

        if remaining:
            read = {shards[number]: self._tokens[number] for number in to_index}
            self._launch(steps, max(len(to_index), len(remaining)), read, index.STAGE)
        receipts = folder.all_receipts((*shards, *groups))
        lacking = [receipts[name].read_stats(tasks.IndexStats).without_id for name in shards]
        lacking += [receipts[name].read_stats(tasks.GroupStats).repeated for name in groups]
        self._groups = [receipts[name] for name in groups]
        return {number for each in lacking for number in each}

    # ---- selection ----

    def select(self) -> list[int]:
        """Select the documents; return the number of documents, or of sequences, of each part."""
        self._mix = replace(self._mix, partitions=self._partitions())
        mix, folder = self._mix, self._folder
        keyed = self._keyed()
        before = self._tokens_before(keyed)
        names = _names("selected", mix.partitions)
        kinds = ("", "-lengths") if self.arrangement.is_best_fit else ("",)
        folder.expect(f"{WORK}/{name}{kind}.bin" for name in names for kind in kinds)
        elements = [
            _element(tasks.KeyRange(number, tuple(before[:, number].tolist())))
            for number in self.remaining(names)
        ]
        urls = [folder.path(receipt.files[0].name) for receipt in keyed]

        def steps(mix: tasks.MixTask, engine: Engine) -> Collection:
            ranges = engine.tasks("KeyRanges", elements)
            return engine.run("SelectRange", partial(select.select_range, mix, urls), ranges, str)

        if elements:
            self._launch(steps, len(elements))
        receipts = folder.all_receipts(names)
        self._selected = [receipts[name] for name in names]
        measured = (each.read_stats(MeasureStats) for each in self._selected)
        tables.refuse_nothing(sum(each.parts[0].tokens for each in measured))
        self._measured = planning.Measured(self._task, self._selected)
        rows = self._measured.rows(folder)
        if not all(rows):
            raise DataError(
                f"{self._measured.totals[rows.index(0)].tokens:,} tokens fill no sequence of "
                f"{self.arrangement.sequence_length:,} tokens",
                remedy="take more tokens, or give a smaller {sequence_length}",
            )
        return rows

    def _partitions(self) -> int:
        """Return the number of ranges of keys; it follows from the documents alone."""
        documents = int(self.sums[1, :, 0].sum())
        for each, (count, _) in zip(self._mix.ranges, self.sums[0].tolist(), strict=True):
            documents += count * len(each.epochs) if each is not None else 0
        return _parts_of(documents)

    def _keyed(self) -> list[Receipt]:
        """Return the receipts of the groups with keys."""
        names = _names("keyed", self._mix.groups)
        self._folder.expect(f"{WORK}/{name}{kind}.bin" for name in names for kind in ("", "-sums"))
        elements = [
            _element(tasks.Group(number, self._folder.path(self._groups[number].files[0].name)))
            for number in self.remaining(names)
        ]

        def steps(mix: tasks.MixTask, engine: Engine) -> Collection:
            groups = engine.tasks("Groups", elements)
            return engine.run("KeyGroup", partial(select.key_group, mix), groups, str)

        if elements:
            self._launch(steps, len(elements))
        receipts = self._folder.all_receipts(names)
        return [receipts[name] for name in names]

    def _tokens_before(
        self, keyed: Sequence[Receipt]
    ) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Return int64[slots, partitions]: the tokens of each slot before each range of keys."""
        shape = len(tables.slots(self._mix.ranges)), self._mix.partitions
        sums = np.zeros(shape, np.int64)
        for receipt in keyed:
            file = receipt.files[1]
            data = read_hashed(self._folder.storage, self._folder.path(file.name), file.sha256)
            sums += np.frombuffer(data, np.int64).reshape(shape)
        before: NDArray[np.int64] = np.cumsum(sums, axis=1) - sums
        return before

    # ---- writing ----

    def write(self, rows: Sequence[int]) -> tuple[list[Manifest], int]:
        """Write the new shards; return the manifest of each part, and the shards kept."""
        plans, folder, mix = self._measured.plans(rows), self._folder, self._mix
        self.plan_new_shards(plans)
        self._mix = mix = replace(mix, arrange=self._task)
        placed = _names("placed", mix.partitions)
        scattered = _names("scatter", len(self._shards))
        suffixes = shard_format(self._task.shard_format).suffixes
        new = planning.new_shards(plans)
        folder.expect(f"{WORK}/{name}.bin" for name in (*placed, *scattered))
        folder.expect(f"{WORK}/{name}{suffix}" for name, _ in new for suffix in suffixes)
        parts = [part or "all" for part in self.arrangement.parts]
        folder.expect(token_counts_name(part_task(n, part)) for n in scattered for part in parts)
        remaining = self.remaining([name for name, _ in new])
        to_scatter = self.remaining(scattered, self._task.blocks_made_of)
        if remaining or to_scatter:
            elements = [planning.to_element(new[number][1]) for number in remaining]
            self._write(placed, scattered, to_scatter, elements)
        receipts = folder.all_receipts([*scattered, *(name for name, _ in new)])
        self._scattered = [receipts[name] for name in scattered]
        self._texts = self._added_texts()
        self._documents = self._manifest(rows)
        return self.finish(plans), len(new) - len(remaining)

    def _write(
        self,
        placed: Sequence[str],
        scattered: Sequence[str],
        to_scatter: Sequence[int],
        new: Sequence[str],
    ) -> None:
        """Run the steps from selected documents to new shards."""
        to_place = self.remaining(placed)
        known_placed = self.files_of(placed)
        measured = self._measured.shards(placed)
        ranges = [
            _element(
                tasks.KeyRange(
                    number,
                    sums=measured[number].before,
                    selected=self._folder.path(self._selected[number].files[-1].name),
                )
            )
            for number in to_place
        ]
        shards = [_element(self._shards[number]) for number in to_scatter]
        new_shards = self.new_shards_steps(scattered, new)

        def steps(mix: tasks.MixTask, engine: Engine) -> Collection:
            places = engine.run(
                "PlaceRange",
                partial(place.place_range, mix),
                engine.tasks("KeyRanges", ranges),
                str,
            )
            blocks = engine.run(
                "ScatterTaken",
                partial(place.scatter_taken, mix, known_placed),
                engine.tasks("Shards", shards),
                str,
                places,
            )
            return new_shards(self._synced(mix.arrange), engine, blocks)

        read = {scattered[number]: self._tokens[number] for number in to_scatter}
        read |= self.tokens_of_new_shards()
        self._launch(steps, max(len(ranges), len(shards), len(new)), read)

    def _added_texts(self) -> list[PartTexts]:
        """Return the texts of each part, after a check that their tokens are what was planned."""
        stats = [each.read_stats(place.ScatterStats) for each in self._scattered]
        texts = [
            added_texts([each.texts[number] for each in stats])
            for number in range(len(self.arrangement.parts))
        ]
        for number, each in enumerate(texts):
            tokens = sum(row.tokens for row in (each.sources or {}).values())
            if tokens != self.total(number).tokens:
                raise DataError(LOST)
        return texts

    def total(self, number: int) -> PartSums:
        """See `ArrangedShards.total`."""
        total, plan = self._measured.totals[number], self._task.parts[number]
        length = self.arrangement.sequence_length
        if length is None or self.arrangement.is_best_fit:
            return total
        return PartSums(total.documents, plan.rows * length)

    def described_part(self, number: int, padding: int = 0) -> ArrangedPart:
        """See `ArrangedShards.described_part`."""
        texts = self._texts[number]
        return ArrangedPart(
            settings=self.arrangement,
            documents=sum(row.documents for row in (texts.sources or {}).values()),
            tokens=self.total(number).tokens,
            padding=padding,
            part=self.arrangement.parts[number],
            texts=texts,
        )

    def write_counts(self, number: int, manifest: Manifest) -> FileInfo:
        """See `ArrangedShards.write_counts`."""
        at = number - len(self.arrangement.parts)
        files = [receipt.files[at] for receipt in self._scattered]
        sources = [*filter(None, manifest.tokens_by_source)]
        counts = added_up(self._folder, files, id_columns(self._tokenizer), sources)
        fingerprint = self._tokenizer.fingerprint
        return write_token_counts(self._folder.storage, self.folder_of(number), fingerprint, counts)

    def _manifest(self, rows: Sequence[int]) -> Manifest:
        """Return what the manifests of all parts share."""
        first, mix = self._inputs.first, self._mix
        dropped = np.sum([each.dropped for each in self._stats], axis=0).tolist()
        sources = {
            name: MixedSource(
                target=part.target,
                skip=part.skip,
                max_epochs=part.max_epochs,
                documents=int(self.sums[0, number, 0]),
                tokens=int(self.sums[0, number, 1]),
                identity="id" if mix.by_id[number] else "tokens",
                dropped=dropped[number],
            )
            for number, (name, part) in enumerate(self._parts.items())
        }
        cut = self._measured.totals[0].tokens - self.total(0).tokens
        identity = self._options.identity or "auto"
        mixture = Mixture(mix.seed, sources, mix.duplicates, identity, cut)  # type: ignore[arg-type]
        return structs.replace(
            first,
            settings=first.encoding,
            rejects=Rejects({}, ()),
            plan=NO_PLAN,
            arranged=UNSET,
            mixture=mixture,
            files=(),
            job_fingerprint=UNSET,
        )

    # ---- for all ----

    def _launch(
        self,
        steps: Callable[[tasks.MixTask, Engine], Collection],
        count: int,
        read: dict[str, int] | None = None,
        stage: str = STAGE,
    ) -> None:
        """Run steps of a mixture; all but new shards are temporary files."""

        def described(task: ArrangeTask) -> Steps:
            return partial(steps, replace(self._mix, arrange=unsynced(task)))

        self.run(described, count, read or {}, stage)

    def _synced(self, task: ArrangeTask) -> ArrangeTask:
        """Return the same task for files that stay."""
        url, fingerprint = task.folder.url, task.folder.fingerprint
        return replace(task, folder=TaskFolder(self._folder.storage, url, fingerprint))


def _names(kind: str, count: int) -> list[str]:
    return [task_name(kind, number, count) for number in range(count)]


def _element(value: tasks.InputShard | tasks.Group | tasks.KeyRange) -> str:
    return json.encode(value).decode()


def _parts_of(documents: int) -> int:
    """Return the number of groups or ranges of so many documents.

    Small ones take less memory; but each group or range is read from the files of all shards.
    """
    small, large = (-(-documents // each) for each in (tasks.RECORDS // 4, tasks.RECORDS))
    return max(1, large, min(small, _SMALL_PARTS))

"""The end of an arrangement: the final names of new shards, and the manifest of each part."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET

from bpe_beam.errors import DataError
from bpe_beam.folders.artifact_names import MANIFEST_FILE, REJECTS
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.receipts import Publication, Receipt
from bpe_beam.jobs.corpus.summary import Rows
from bpe_beam.jobs.input_folders import inside, write_small_files
from bpe_beam.jobs.tokenize.arrange_steps import Arranging, Sums, described_part
from bpe_beam.shards.manifest import NO_PLAN, Manifest, Rejects, with_files
from bpe_beam.shards.numbering import number_shards, shard_files
from bpe_beam.shards.shard_rows import Shard, TokenlessSplit, Totals
from bpe_beam.shards.token_counts import read_token_counts, write_token_counts
from bpe_beam.storage.hashing import read_hashed
from bpe_beam.workers.arrange.task import NewShardStats, PartPlan, PartSums
from bpe_beam.workers.token_counter import added_up, id_columns


class ArrangedShards:
    """The new shards of an arrangement."""

    def __init__(self, arranging: Arranging, sums: Sums) -> None:
        self._arranging = arranging
        self._sums = sums
        self._folder = arranging.folder
        self._storage = arranging.inputs.storage

    def finish(self, plans: Sequence[PartPlan]) -> tuple[Manifest, ...]:
        """Give the new shards their final names, and write the manifests."""
        folder, storage = self._folder, self._storage
        publications: list[Publication] = []
        manifests: list[Manifest] = []
        for number, (plan, total) in enumerate(zip(plans, self._sums.totals, strict=True)):
            names = [plan.task(shard) for shard in range(plan.shards)]
            receipts = [*map(folder.all_receipts(names).__getitem__, names)]
            stats = [receipt.read_stats(NewShardStats) for receipt in receipts]
            self._refuse_lost(total, receipts, stats)
            numbered = number_shards(receipts, [each.tokens for each in stats])
            manifests.append(self._manifest(number, numbered, stats))
            publications += [_moved_into(plan.name, each) for each in numbered]
            storage.make_folder(folder.path(plan.name) if plan.name else folder.url)
        folder.publish(publications)
        self._copy_rejects()
        tokenizer = self._arranging.inputs.tokenizer.json_bytes
        counts = self._write_token_counts(manifests)
        for number, plan in enumerate(plans):
            write_small_files(folder, manifests[number], tokenizer, plan.name)
            manifests[number] = with_files(
                manifests[number], tokenizer, counts[number], job=folder.fingerprint
            )
        for plan, manifest in zip(plans[1:], manifests[1:], strict=True):
            url = folder.path(inside(plan.name, MANIFEST_FILE))
            storage.write_bytes(url, manifest.to_bytes())
        folder.finish(inside(plans[0].name, MANIFEST_FILE), manifests[0].to_bytes())
        return tuple(manifests)

    def _refuse_lost(
        self, total: PartSums, receipts: Sequence[Receipt], stats: Sequence[NewShardStats]
    ) -> None:
        """Compare the tokens of a part's new shards with the tokens of its documents."""
        tokens = sum(each.tokens - each.padding for each in stats)
        if tokens != total.tokens:
            self._folder.forget(receipts)
            raise DataError(
                f"{self._folder.url}: the new shards have {tokens:,} tokens of documents; expected "
                f"{total.tokens:,}: the runner lost a result, or a file of this run was changed; "
                "run this job again"
            )

    def _manifest(
        self, number: int, publications: Sequence[Publication], stats: Sequence[NewShardStats]
    ) -> Manifest:
        arranging, documents = self._arranging, self._arranging.tokenized
        shards: list[Shard] = []
        tokenless: list[TokenlessSplit] = []
        for index, (publication, each) in enumerate(zip(publications, stats, strict=True)):
            files = shard_files(publication.receipt)
            row: Rows = {
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
        if number == 0 and documents.rejects.files:
            # They belong to the whole corpus: no shard has them.
            rejects = documents.rejects
            tokenless.append(TokenlessSplit(len(stats), (), 0, 0, sum(rejects.by_reason.values())))
        padding = sum(each.padding for each in stats)
        settings = arranging.inputs.settings
        return msgspec.structs.replace(
            documents,
            format=settings.format,
            plan=NO_PLAN,
            shards=tuple(shards),
            tokenless=tuple(tokenless),
            totals=Totals.of(shards, tokenless),
            rejects=rejects,
            arranged=described_part(arranging, self._sums, number, padding),
            columns=settings.columns or UNSET,
        )

    def _write_token_counts(self, manifests: Sequence[Manifest]) -> list[FileInfo]:
        """Write how often each id occurs in the documents of each part."""
        storage, tokenizer = self._storage, self._arranging.inputs.tokenizer
        fingerprint, columns = tokenizer.fingerprint, id_columns(tokenizer)
        written = []
        for number, (part, manifest) in enumerate(
            zip(self._arranging.arrangement.parts, manifests, strict=True)
        ):
            tokens = manifest.tokens_by_source
            if self._sums.token_counts:
                sources = None if None in tokens else [name for name in tokens if name is not None]
                files = self._sums.token_counts[number]
                counts = added_up(self._folder, files, columns, sources)
            else:
                file = self._arranging.tokenized.token_counts
                assert file is not None  # of `tokenize`
                documents = self._arranging.documents
                counts = read_token_counts(storage, documents, fingerprint, tokens, file)
            folder = self._folder.path(part) if part else self._folder.url
            written.append(write_token_counts(storage, folder, fingerprint, counts))
        return written

    def _copy_rejects(self) -> None:
        storage, folder, arranging = self._storage, self._folder, self._arranging
        part, files = arranging.arrangement.parts[0], arranging.tokenized.rejects.files
        if files:
            storage.make_folder(folder.path(inside(part, REJECTS)))
        for file in files:
            url = storage.join(arranging.documents, *file.name.split("/"))
            data = read_hashed(storage, url, file.sha256)
            storage.write_bytes(folder.path(inside(part, file.name)), data)


def files_inside(part: str, files: Sequence[FileInfo]) -> tuple[FileInfo, ...]:
    """Return files under their names below the output."""
    return tuple(msgspec.structs.replace(file, name=inside(part, file.name)) for file in files)


def _moved_into(part: str, publication: Publication) -> Publication:
    """Return a publication whose final names are in the folder of a part."""
    moves = tuple((name, inside(part, final)) for name, final in publication.moves)
    files = files_inside(part, publication.receipt.files)
    return Publication(msgspec.structs.replace(publication.receipt, files=files), moves)

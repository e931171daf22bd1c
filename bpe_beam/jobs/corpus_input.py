"""What the jobs that read a corpus share: its plan, what identifies their work, its rejects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bpe_beam.corpus.boundaries import files_with_gaps, without_units
from bpe_beam.corpus.new_files import names_below
from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.slices import Boundaries
from bpe_beam.corpus.split_planning import can_be_cut, make_plan
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE
from bpe_beam.folders.file_info import FileInfo
from bpe_beam.folders.kinds import kind_of
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.folders.receipts import Receipt
from bpe_beam.folders.run_folder import RunFolder
from bpe_beam.messages import first_few
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.field import identity_of
from bpe_beam.storage import Storage, redact
from bpe_beam.workers.split_stats import SplitReading
from bpe_beam.workers.split_task import rejects_name, task_name

_SHOWN_FILES = 10


def read_settings(given: InputSettings) -> ReadSettings:
    """How the given files become documents."""
    return ReadSettings(
        input_format=given.input_format,
        text_field=given.text_field,
        id_field=given.id_field,
        document_separator=given.document_separator,
        source_field=given.source_field,
        sources=given.sources,
    )


def require_no_artifacts(storage: Storage, inputs: Iterable[str]) -> list[str]:
    """Return the folders among the inputs, after a check that no job wrote them.

    Args:
        storage: The storage client.
        inputs: Paths, URLs, globs or folders.

    Raises:
        UsageError: Names the first folder that a job wrote.
    """
    folders = list(filter(storage.is_folder, inputs))
    for folder in folders:
        kind = kind_of(storage, folder) if JOB_FILE in storage.list_names(folder) else None
        if kind is not None:
            raise UsageError(
                f"input {redact(folder)} holds {kind}, not a corpus; to read its files as text, "
                "name them with a glob"
            )
    return folders


def plan_of(
    storage: Storage,
    given: InputSettings,
    *,
    output: str | None = None,
    with_places: bool = False,
) -> Plan:
    """Return the plan of the input files.

    Args:
        storage: The storage client.
        given: The input settings.
        output: The job's output folder, if it has one.
        with_places: Whether the position of each document in the corpus is needed; compressed
            files are then not split.

    Raises:
        UsageError: No such files; an input that is a folder which a job wrote, or which holds the
            output folder.
    """
    for folder in require_no_artifacts(storage, given.inputs):
        if output is not None and any(names_below(folder, output)):
            raise UsageError(
                f"output {redact(output)} is in the input folder {redact(folder)}, and would be "
                "read by the next run: give an output folder elsewhere, or name the files with a "
                "glob"
            )
    reading = read_settings(given)
    return make_plan(
        storage,
        list(given.inputs),
        input_format=reading.input_format,
        document_separator=reading.document_separator,
        range_bytes=given.range_bytes,
        exclude=list(given.exclude),
        cut_compressed=not with_places,
    )


def identity(given: InputSettings, plan: Plan) -> dict[str, Any]:
    """Return what a job's results depend on, of its input, as `job.json` has it."""
    return {
        "reading": identity_of(given),
        "plan": {
            "files": len(plan.files),
            "bytes": plan.size,
            "splits": len(plan.splits),
            "fingerprint": plan.fingerprint(),
        },
    }


def rejects_names(plan: Plan) -> list[str]:
    """The files that rejects may go to, one a split."""
    return [rejects_name(split.index, len(plan.splits)) for split in plan.splits]


def rejects_there(storage: Storage, url: str, plan: Plan) -> list[str]:
    """The files of a finished folder that hold rejects."""
    found = storage.list_names(storage.join(url, "rejects"))
    return sorted({f"rejects/{name}" for name in found}.intersection(rejects_names(plan)))


def bytes_read(plan: Plan, kind: str, done: Collection[int], finished: Collection[str] = ()) -> int:
    """Return the stored bytes of the splits that need not be read any more, for progress.

    Args:
        plan: The plan.
        kind: The kind of task of a split, as in its receipt's name.
        done: The numbers of splits that an earlier run finished.
        finished: The names of the tasks that this run finished.
    """
    splits = len(plan.splits)
    return sum(
        split.size
        for split in plan.splits
        if split.index in done or task_name(kind, split.index, splits) in finished
    )


def split_task_names(plan: Plan, kind: str) -> list[str]:
    """Return the names of the tasks of all splits of a plan, in order; see `task_name`."""
    return [task_name(kind, split.index, len(plan.splits)) for split in plan.splits]


def done_splits(folder: OutputFolder, plan: Plan, kind: str) -> dict[int, Receipt]:
    """Return the receipts of the splits that an earlier run finished, by number.

    Args:
        folder: The job's folder.
        plan: The plan.
        kind: The kind of task of a split.
    """
    return _done(folder, folder.receipt, plan, kind)


def _done(
    folder: OutputFolder, receipt: Callable[[str], Receipt | None], plan: Plan, kind: str
) -> dict[int, Receipt]:
    """Return the receipts of splits with these very slices, of files that have not changed since.

    A restored split is trusted only by the run that restored it: a killed run may have read other
    files.
    """
    done = {}
    for split, name in zip(plan.splits, split_task_names(plan, kind), strict=True):
        found = receipt(name)
        reading = None if found is None else SplitReading.from_json(found.stats)
        if found is None or reading is None or not reading.is_of(plan, split):
            continue
        if folder.restored or reading.boundaries is not None:
            done[split.index] = found
    return done


@dataclass(frozen=True)
class ReadCorpus:
    """A corpus of which all splits were read.

    Attributes:
        plan: The plan as it was read: files whose slices were not contiguous are read whole.
        splits: The receipts of the splits, in the order of the plan.
        merged: The receipts of the tasks that merged all splits.
        not_split: The names of files that one worker had to read alone, though they are larger than
            a split.
    """

    plan: Plan
    splits: list[Receipt]
    merged: list[Receipt]
    not_split: list[str]


def read_whole(
    folder: OutputFolder,
    plan: Plan,
    kind: str,
    given: InputSettings,
    run: Callable[[Plan, Mapping[int, Receipt], RunFolder], None],
    merged: Sequence[str] = (),
    stale: Callable[[Mapping[str, Receipt | None]], Sequence[str]] = lambda receipts: (),
) -> ReadCorpus:
    """Have all splits read until the slices of every file are contiguous.

    See `corpus/boundaries.py`.

    Args:
        folder: The job's folder.
        plan: The plan.
        kind: The kind of task of a split.
        given: The input settings.
        run: Reads the splits of a plan but for those that are done, into the folder of a run.
        merged: The names of the tasks that merge all splits.
        stale: Returns the merged tasks whose receipts name splits outside this plan: receipts of
            several runs that were killed may be there together.

    Raises:
        DataError: A receipt is not of this plan: another run of the job has written it.
    """
    names = split_task_names(plan, kind)
    known = {name: folder.receipt(name) for name in (*names, *merged)}
    plan = plan.reading_as_one(_read_as_one_before(plan, known.values()))
    while True:
        done = _done(folder, known.get, plan, kind)
        # Merged tasks go first: while they exist, all splits do.
        old = merged if len(done) < len(names) else stale(known)
        folder.forget(receipt for name in old if (receipt := known.get(name)))
        folder.forget(
            receipt
            for index, name in enumerate(names)
            if index not in done and (receipt := known.get(name))
        )
        attempt = folder.new_run()
        run(plan, done, attempt)
        # It has ended well: nobody writes there any more. One that fails is left to the next claim.
        folder.require_ours()
        folder.take(attempt, all_files=False)
        receipts = folder.all_receipts([*names, *merged])
        if len(_done(folder, receipts.get, plan, kind)) < len(names) or stale(receipts):
            raise DataError(
                f"{folder.url}: another run of this job works in the same folder, or the runner "
                "lost what a worker gave it; when no other run works there, run this one again"
            )
        splits = [receipts[name] for name in names]
        readings = [SplitReading.from_json(receipt.stats) for receipt in splits]
        wrong = files_with_gaps(plan, _boundaries(readings), _proven(readings))
        if not wrong and _as_before(folder, receipts):
            not_split = _not_split(plan, readings, given)
            return ReadCorpus(plan, splits, [receipts[name] for name in merged], not_split)
        plan = plan.reading_as_one(wrong)
        folder.restored.clear()
        known = dict(receipts)


def _as_before(folder: OutputFolder, receipts: Mapping[str, Receipt]) -> bool:
    """Whether tasks that ran again, to repair a finished folder, wrote the same bytes as before.

    If not, the corpus has changed, and the restored splits are of the earlier corpus.
    """
    return all(
        _contents(receipts[task].files) == _contents(files)
        for task, files in folder.restored.items()
        if task in receipts
    )


def _contents(files: Iterable[FileInfo]) -> list[tuple[int, str]]:
    """Return sizes and hashes of files; their names differ while they are in `work/`."""
    return [(file.bytes, file.sha256) for file in files]


def _read_as_one_before(plan: Plan, receipts: Iterable[Receipt | None]) -> set[int]:
    """Return the files that an earlier run found that it must read whole, though the plan splits
    them."""
    several = {part.file for split in plan.splits for part in split.slices if part.start}
    return {
        file
        for receipt in receipts
        if receipt is not None and "slices" in receipt.stats
        for file, start, end in SplitReading.from_json(receipt.stats).slices
        if file in several and start == 0 and end == plan.files[file].size
    }


def _proven(readings: Sequence[SplitReading]) -> frozenset[int]:
    """Return the splits whose slices a finished job has proven contiguous."""
    return frozenset(index for index, row in enumerate(readings) if row.boundaries is None)


def _boundaries(readings: Iterable[SplitReading]) -> list[Boundaries]:
    return [row for reading in readings for row in reading.boundaries or ()]


def _not_split(plan: Plan, readings: Sequence[SplitReading], given: InputSettings) -> list[str]:
    large = {
        file.name
        for file in plan.files
        if file.size > plan.range_bytes and not can_be_cut(file, given.document_separator)
    }
    as_one = {
        plan.files[part.file].name
        for split in plan.splits
        for part in split.slices
        if part.end - part.start > plan.range_bytes
    }
    alone = without_units(plan, _boundaries(readings), _proven(readings))
    return sorted({*large, *as_one, *alone})


def inputs_summary(plan: Plan, not_split: Sequence[str]) -> dict[str, Any]:
    """What a job's summary says of its input files."""
    return {
        "files": len(plan.files),
        "files_excluded": plan.excluded or None,
        "duplicate_inputs": first_few(plan.duplicates, _SHOWN_FILES) or None,
        "files_read_by_one_worker": first_few(not_split, _SHOWN_FILES) or None,
    }

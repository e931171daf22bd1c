"""What the jobs that read a corpus share: its plan, what identifies their work, its rejects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from bpe_beam.corpus.boundaries import apart, from_json, without_units
from bpe_beam.corpus.new_files import names_below
from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.slices import Edges
from bpe_beam.corpus.split_planning import can_be_cut, make_plan
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE
from bpe_beam.folders.job_folder import JobFolder, Receipt
from bpe_beam.folders.kinds import kind_of
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.messages import first_few
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.field import identity_of
from bpe_beam.storage import Storage, redact
from bpe_beam.workers.split_task import piece_name, rejects_name, was_read

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
    return make_plan(
        storage,
        list(given.inputs),
        input_format=given.input_format,
        document_separator=given.document_separator,
        range_bytes=given.range_bytes,
        exclude=list(given.exclude),
        cut_compressed=not with_places,
    )


def identity(given: InputSettings, plan: Plan) -> dict[str, Any]:
    """What a job's results depend on, of its input; stands in `job.json`."""
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
        kind: The kind of piece that a split becomes, as in its receipt's name.
        done: Splits that an earlier run finished.
        finished: Names of the pieces that this run finished.
    """
    splits = len(plan.splits)
    return sum(
        split.size
        for split in plan.splits
        if split.index in done or piece_name(kind, split.index, splits) in finished
    )


def done_splits(folder: OutputFolder, plan: Plan, kind: str) -> dict[int, Receipt]:
    """The splits that an earlier run finished, by number."""
    return _done(folder, folder.receipt, plan, kind)


def _done(
    folder: OutputFolder, receipt: Callable[[str], Receipt | None], plan: Plan, kind: str
) -> dict[int, Receipt]:
    """The splits of which there is a receipt for the very slices, of files that have not changed
    since. What was restored counts only in the run that did it: one that was killed then may have
    made other pieces of other files."""
    done = {}
    for split in plan.splits:
        found = receipt(piece_name(kind, split.index, len(plan.splits)))
        if found is None or not was_read(found["facts"], plan, split):
            continue
        if folder.restored or found["facts"]["edges"] is not None:
            done[split.index] = found
    return done


def read_whole(
    folder: OutputFolder,
    plan: Plan,
    kind: str,
    run: Callable[[Plan, Mapping[int, Receipt], JobFolder], None],
    after: Sequence[str] = (),
    stale: Callable[[Mapping[str, Receipt | None]], Sequence[str]] = lambda receipts: (),
) -> tuple[Plan, dict[str, Receipt]]:
    """Has all splits read until the slices of every file meet, see `edges.py`.

    Args:
        folder: The job's folder.
        plan: The plan.
        kind: What a split's piece is called.
        run: Reads the splits of a plan but for those that are done, into the folder of a run.
        after: Pieces that are made of all splits.
        stale: Which of them, by the receipts, are made of other splits: those of several runs that
            were killed may stand together.

    Returns:
        The plan as it was read: files whose slices did not meet were read as one. And all receipts.

    Raises:
        DataError: A receipt is not of this plan, which a run beside this one has written.
    """
    pieces = [piece_name(kind, split.index, len(plan.splits)) for split in plan.splits]
    known = {piece: folder.receipt(piece) for piece in (*pieces, *after)}
    plan = plan.reading_as_one(_read_as_one_before(plan, known.values()))
    while True:
        done = _done(folder, known.get, plan, kind)
        # What was made of all splits goes first: while it stands, all of them do.
        old = after if len(done) < len(pieces) else stale(known)
        folder.forget(receipt for piece in old if (receipt := known.get(piece)))
        folder.forget(
            receipt
            for index, piece in enumerate(pieces)
            if index not in done and (receipt := known.get(piece))
        )
        attempt = folder.new_run()
        run(plan, done, attempt)
        # It has ended well: nobody writes there any more. One that fails is left to the next claim.
        folder.require_ours()
        folder.take(attempt, all_files=False)
        receipts = folder.all_receipts([*pieces, *after])
        if len(_done(folder, receipts.get, plan, kind)) < len(pieces) or stale(receipts):
            raise DataError(
                f"{folder.url}: another run of this job works in the same folder, or the runner "
                "lost what a worker gave it; when no other run works there, run this one again"
            )
        wrong = files_apart(plan, [receipts[piece]["facts"] for piece in pieces])
        if not wrong and _as_before(folder, receipts):
            return plan, receipts
        plan = plan.reading_as_one(wrong)
        folder.restored.clear()
        known = dict(receipts)


def _as_before(folder: OutputFolder, receipts: Mapping[str, Receipt]) -> bool:
    """Whether pieces that were made again are what they were, where a finished folder is mended: if
    not, the corpus has changed, and what was restored is of another."""
    return all(
        _contents(receipts[piece]["files"]) == _contents(files)
        for piece, files in folder.restored.items()
        if piece in receipts
    )


def _contents(files: Iterable[Mapping[str, Any]]) -> list[tuple[int, str]]:
    """Return what the files hold; their names differ while they are in `work/`."""
    return [(file["bytes"], file["sha256"]) for file in files]


def _read_as_one_before(plan: Plan, receipts: Iterable[Receipt | None]) -> set[int]:
    """The files that an earlier run found that it must read as one, though the plan cuts them."""
    cut = {piece.file for split in plan.splits for piece in split.slices if piece.start}
    return {
        file
        for receipt in receipts
        if receipt is not None
        for file, start, end in receipt["facts"].get("slices", ())
        if file in cut and start == 0 and end == plan.files[file].size
    }


def files_apart(plan: Plan, facts: Sequence[Mapping[str, Any]]) -> frozenset[int]:
    """The files whose slices do not meet, see `edges.py`; they are to be read again as one.

    Args:
        plan: The plan.
        facts: Of each split, in order.
    """
    return apart(plan, _edges(facts), _proven(facts))


def _proven(facts: Sequence[Mapping[str, Any]]) -> frozenset[int]:
    """The splits that a finished job has proven to meet their neighbours."""
    return frozenset(index for index, row in enumerate(facts) if row["edges"] is None)


def not_cut(plan: Plan, facts: Sequence[Mapping[str, Any]], given: InputSettings) -> list[str]:
    """Names of files that one worker had to read alone, though they are larger than a split.

    Args:
        plan: The plan as it was read.
        facts: Of each split.
        given: What is read.
    """
    large = {
        file.name
        for file in plan.files
        if file.size > plan.range_bytes and not can_be_cut(file, given.document_separator)
    }
    as_one = {
        plan.files[piece.file].name
        for split in plan.splits
        for piece in split.slices
        if piece.end - piece.start > plan.range_bytes
    }
    alone = without_units(plan, _edges(facts), _proven(facts))
    return sorted({*large, *as_one, *alone})


def inputs_summary(plan: Plan, not_cut: Sequence[str]) -> dict[str, Any]:
    """What a job's summary says of its input files."""
    return {
        "files": len(plan.files),
        "files_excluded": plan.excluded or None,
        "duplicate_inputs": first_few(plan.duplicates, _SHOWN_FILES) or None,
        "files_read_by_one_worker": first_few(not_cut, _SHOWN_FILES) or None,
    }


def _edges(facts: Iterable[Mapping[str, Any]]) -> list[Edges]:
    return [from_json(edge) for row in facts for edge in row["edges"] or ()]


def sums(facts: Iterable[Mapping[str, Any]], *names: str) -> dict[str, int]:
    """Adds facts of pieces up, by name."""
    rows = list(facts)
    return {name: sum(row[name] for row in rows) for name in names}

"""The input of a job: its plan, its identity in `__job`, its rejects, and checks of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bpe_beam.corpus.early_check import TRIED_RECORDS, documents_without_id, unusable_records
from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.rejects import Limit, names_in
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import JOB_FILE, REJECTS
from bpe_beam.folders.folder_kind import kind_of
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.jobs.output import STDOUT
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.field import identity_of
from bpe_beam.storage import Storage, redact
from bpe_beam.workers.reject_limits import ARRAYS, CorpusTotals, check_limits, files_with_rejects
from bpe_beam.workers.split_task import rejects_name

_SHOWN_BYTES = 80


def read_settings(input_settings: InputSettings) -> ReadSettings:
    """Return the settings of reading, which have the same names."""
    return ReadSettings(
        **{name: getattr(input_settings, name) for name in ReadSettings.__struct_fields__}
    )


def require_no_artifacts(storage: Storage, inputs: Iterable[str]) -> list[str]:
    """Return the folders among the inputs, after a check that no job wrote them."""
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
    input_settings: InputSettings,
    *,
    outputs: Sequence[str | None] = (),
    with_places: bool = False,
) -> Plan:
    require_no_artifacts(storage, input_settings.inputs)
    plan = make_plan(
        storage,
        list(input_settings.inputs),
        input_format=input_settings.input_format,
        document_separator=input_settings.document_separator,
        range_bytes=input_settings.range_bytes,
        exclude=list(input_settings.exclude),
        cut_compressed=not with_places,
        outputs=[each for each in outputs if each not in (None, STDOUT)],
    )
    read_settings(input_settings).check_names([file.name for file in plan.files])
    return plan


def identity(input_settings: InputSettings, plan: Plan) -> dict[str, object]:
    """Return the identity of a job's input, for `__job`: all that its results depend on."""
    return {
        "reading": identity_of(input_settings),
        "plan": {
            "files": len(plan.files),
            "bytes": plan.size,
            "splits": len(plan.splits),
            "fingerprint": plan.fingerprint(),
        },
    }


def rejects_names(plan: Plan) -> list[str]:
    return [rejects_name(split.index, len(plan.splits)) for split in plan.splits]


def existing_rejects(storage: Storage, url: str, plan: Plan) -> list[str]:
    """Return the files of rejects in a finished folder, by name."""
    existing = storage.list_names(storage.join(url, REJECTS))
    return sorted({f"{REJECTS}/{name}" for name in existing}.intersection(rejects_names(plan)))


def check_early(storage: Storage, plan: Plan, input_settings: InputSettings) -> None:
    """Refuse a corpus whose first records all fail for one reason, before the rest is read.

    Nothing is read if a tenth of the records, or two thousand, may be rejects.
    """
    limit = Limit.parse(input_settings.max_rejects)
    if not limit.exceeded(TRIED_RECORDS, 10 * TRIED_RECORDS):
        return
    rejects = unusable_records(storage, plan, read_settings(input_settings))
    if rejects is None:
        return
    first, files = rejects[0], len({reject.file for reject in rejects})
    begins = f", which begins {first.data[:_SHOWN_BYTES]!r}" if first.data else ""
    field = read_settings(input_settings).text_field_of(first.file)
    near_names = names_in(first.to_json(), field)
    detail = f", {first.detail[:300]}" if first.detail else ""
    arrays = ARRAYS if first.data.startswith(b"[") else ""
    raise DataError(
        f"{len(rejects):,} records, the first of {files:,} of the {len(plan.files):,} files, all "
        f"fail for one reason: {first.reason}{near_names or detail}. The first is in "
        f"{first.file} at {first.position}{begins}. No more was read",
        remedy=f"check {{text_field}} and {{input_format}}{arrays}, or read everything with "
        "{max_rejects} 10% or more",
    )


def id_warnings(
    storage: Storage, plan: Plan, input_settings: InputSettings, *, needed: bool = False
) -> list[str]:
    """Return a warning for each field of ids that is missing in the first records of the corpus."""
    reading = read_settings(input_settings)
    if reading.id_field == ReadSettings().id_field and not needed:
        return []
    return [
        f"{field!r} is the field of ids, but none of the first {count:,} documents has it; the "
        f"first are in {file}"
        for field, (count, file) in documents_without_id(storage, plan, reading).items()
    ]


def check_documents(
    folder: TaskFolder,
    input_settings: InputSettings,
    totals: CorpusTotals,
    stored_bytes: int,
    files: Iterable[str],
) -> None:
    """Refuse a corpus without documents, or beyond the limits of rejects and losses."""
    check_limits(
        folder,
        totals,
        stored_bytes,
        files,
        max_rejects=input_settings.max_rejects,
        max_lost=input_settings.max_lost,
        reading=read_settings(input_settings),
    )
    if totals.documents:
        return
    rejects = sum(totals.rejects.values())
    inputs = ", ".join(input_settings.inputs)
    verb = "document was" if totals.dropped == 1 else "documents were"
    empty = f"{totals.dropped:,} {verb} empty and dropped"
    if rejects:
        records = f"none of the {rejects:,} records"
        if totals.dropped:
            records = f"{empty}, and none of the {rejects:,} other records"
        raise DataError(
            f"there is no document: {records} is usable. "
            f"{files_with_rejects(folder, files, read_settings(input_settings))}",
            remedy=f"they are listed in {folder.path(REJECTS)}",
        )
    if totals.dropped:
        raise DataError(
            f"there is no document: {empty}, of {inputs}",
            remedy="check {text_field}, or keep them with {empty_documents}",
        )
    raise DataError(f"the corpus is empty: no document in {inputs}")

"""The input of a job: its plan, its identity in `job.json`, the names of its rejects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bpe_beam.corpus.new_files import names_below
from bpe_beam.corpus.plan import Plan
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.errors import UsageError
from bpe_beam.folders.artifact_names import JOB_FILE
from bpe_beam.folders.folder_kind import kind_of
from bpe_beam.messages import first_few
from bpe_beam.settings.common import InputSettings
from bpe_beam.settings.field import identity_of
from bpe_beam.storage import Storage, redact
from bpe_beam.workers.split_task import rejects_name

_SHOWN_FILES = 10


def read_settings(given: InputSettings) -> ReadSettings:
    """Return how files become documents."""
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
    """Return what a job's results depend on, of its input, as `job.json` has it.

    Args:
        given: The input settings.
        plan: The plan.
    """
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
    """Return the names of the files of rejects, one for each split."""
    return [rejects_name(split.index, len(plan.splits)) for split in plan.splits]


def rejects_there(storage: Storage, url: str, plan: Plan) -> list[str]:
    """Return the files of rejects in a finished folder, by name.

    Args:
        storage: The storage client.
        url: The folder.
        plan: The plan.
    """
    found = storage.list_names(storage.join(url, "rejects"))
    return sorted({f"rejects/{name}" for name in found}.intersection(rejects_names(plan)))


def inputs_summary(plan: Plan, not_split: Sequence[str]) -> dict[str, Any]:
    """Return the rows of a summary about the input files.

    Args:
        plan: The plan.
        not_split: The files that one worker read, though they exceed a split.
    """
    return {
        "files": len(plan.files),
        "files_excluded": plan.excluded or None,
        "duplicate_inputs": first_few(plan.duplicates, _SHOWN_FILES) or None,
        "files_read_by_one_worker": first_few(not_split, _SHOWN_FILES) or None,
    }

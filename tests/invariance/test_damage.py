"""Damage that agrees with itself: edits of manifests, `__job`, windows and receipts are named.

Each file of a small job is edited in every field, and byte by byte. What reads the folder refuses
every edit that changes what the file says; a receipt that was edited is as if it were not there.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import reference_bpe
from damage import all_edits, pretty, sample
from made_text import documents, write
from msgspec import UNSET, structs, to_builtins
from msgspec.structs import replace
from stream_by_hand import stream_of

from bpe_beam import Tokenizer
from bpe_beam.corpus.new_files import Watched
from bpe_beam.counts.manifest import read_manifest as read_counts
from bpe_beam.counts.part_files import read_part
from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import TOKEN_COUNTS_FILE
from bpe_beam.folders.claim import claim_folder
from bpe_beam.folders.output_folder import OutputFolder
from bpe_beam.folders.run_folder import JobFolder
from bpe_beam.jobs import count, tokenize, verify
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.settings.verify import VerifySettings
from bpe_beam.shards.manifest import Manifest
from bpe_beam.shards.numbering import shard_name
from bpe_beam.shards.shard_rows import TokenlessSplit, Totals
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import with_checksum
from bpe_beam.workers.stream.watcher import Watcher, tokenize_window_split

STORAGE = Storage()
QUIET = Progress("none", stream=io.StringIO())
RUN = RunSettings(workers=1, quiet=True)
MOST = 250
"""Edits tried of each file."""


@dataclass
class Made:
    """What small jobs left."""

    folder: Path
    job: TokenizeSettings
    counts: CountSettings

    @property
    def tokens(self) -> Path:
        return Path(self.job.output)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("damage")
    vocab, merges = reference_bpe.learn_bpe([("Ġthe", 5)], vocab_size=258)
    Tokenizer.from_learned(vocab, merges, []).save(str(folder / "tokenizer.json"))
    inputs = [write(folder / f"{name}.jsonl", documents(12, seed=i)) for i, name in enumerate("ab")]
    with inputs[1].open("a") as file:
        file.write('{"text": ""}\n' * 60)  # A split without tokens.
    read = InputSettings(tuple(map(str, inputs)), range_bytes=600)
    job = TokenizeSettings(read, str(folder / "tokenizer.json"), str(folder / "tokens"), RUN)
    tokenize.run(job, QUIET)
    counts = CountSettings(input=read, output=str(folder / "counts"), run=RUN)
    count.run(counts, QUIET)
    return Made(folder, job, counts)


def passing(
    path: Path, edits: Iterator[tuple[str, bytes]], accepts: Callable[[], bool], seed: int = 1
) -> tuple[list[str], int]:
    """The edits of a file that are accepted, and how many were tried. The file stays as it was."""
    whole = path.read_bytes()
    value = json.loads(whole)
    del value["sha256"]
    chosen = [("checksum dropped", pretty(value)), *sample(edits, MOST, seed)]
    passed = []
    try:
        for name, data in chosen:
            path.write_bytes(data)
            try:
                if accepts():
                    passed.append(name)
            except (DataError, UsageError):
                pass
    finally:
        path.write_bytes(whole)
    return passed, len(chosen)


def check(passed: list[str], tried: int, least: int) -> None:
    print(f"{tried} edits tried, {len(passed)} passed")
    assert not passed
    assert tried >= least


def is_proven(made: Made) -> bool:
    verify.run(VerifySettings((str(made.tokens),)), QUIET)
    return True


def test_tokens_manifest(made: Made) -> None:
    path = made.tokens / "__manifest"
    edits = all_edits(path.read_bytes(), 1, pretty)
    check(*passing(path, edits, lambda: is_proven(made)), least=200)


@pytest.mark.slow
def test_job_file(made: Made) -> None:
    path = made.tokens / "__job"
    edits = all_edits(path.read_bytes(), 2, pretty)
    check(*passing(path, edits, lambda: is_proven(made)), least=100)

    whole = path.read_bytes()

    def is_left() -> bool:
        """Run the job again, which makes the file again."""
        assert to_builtins(tokenize.run(made.job, QUIET))["was_finished_before"]
        return path.read_bytes() != whole

    edits = all_edits(whole, 3, pretty)
    check(*passing(path, edits, is_left), least=100)


def test_counts_manifest(made: Made) -> None:
    folder = made.counts.output
    path = Path(folder) / "__manifest"

    def is_read() -> bool:
        manifest = read_counts(STORAGE, folder)
        return sum(len(read_part(STORAGE, folder, manifest, p)) for p in manifest.parts) >= 0

    edits = all_edits(path.read_bytes(), 4, pretty)
    check(*passing(path, edits, is_read), least=200)


def test_window_log(made: Made, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    watched = Watched.of(STORAGE, [str(made.folder / "*.jsonl")])
    stream = stream_of(watched, tmp_path / "out", Tokenizer.from_file(made.job.tokenizer))
    watcher = Watcher(stream)
    watcher.look(1.0)
    tasks = watcher.look(2.0)
    path = tmp_path / "out" / "window-00000000" / "__window"
    whole = path.read_bytes()

    def is_read() -> bool:
        other = Watcher(stream)
        other.look(1.0)
        return True

    edits = all_edits(whole, 5, lambda value: json.dumps(value, indent=1).encode())
    check(*passing(path, edits, is_read), least=40)

    # A receipt that was edited is removed, and its shard is made again.
    for _, work in tasks:
        tokenize_window_split(stream, work)
    receipt = next((path.parent / "work").glob("*.json"))
    folder = watcher._log.folder(watcher._log.open[0])

    def is_believed() -> bool:
        return folder.read_receipt(receipt.stem) is not None

    assert is_believed()
    edits = all_edits(receipt.read_bytes(), 6, pretty)
    check(*passing(receipt, edits, is_believed), least=40)


def test_receipts_of_a_job(made: Made, tmp_path: Path) -> None:
    settings = replace(made.job, output=str(tmp_path / "tokens"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OutputFolder, "finish", lambda *_: (_ for _ in ()).throw(DataError("stop")))
        with pytest.raises(DataError, match="stop"):
            tokenize.run(settings, QUIET)
    receipt = sorted((tmp_path / "tokens" / "work").glob("shard-*.json"))[0]
    record = claim_folder(STORAGE, str(tmp_path / "other"), {"job": "x"}, ["y"]).record
    value = json.loads(receipt.read_bytes())
    names = frozenset(re.sub("^work/run-[^/]+/", "", file["name"]) for file in value["files"])
    job = json.loads((tmp_path / "tokens" / "__job").read_bytes())
    record = structs.replace(record, job=job["job"], settings=job["settings"], names=names)

    def is_believed() -> bool:
        # A folder that is opened again: one that has read a receipt does not read it twice.
        return value["task"] in JobFolder(STORAGE, settings.output, record).receipts()

    assert is_believed()
    edits = all_edits(receipt.read_bytes(), 7, pretty)
    check(*passing(receipt, edits, is_believed), least=40)


# Damage that even has the right checksum: whoever made it wrote the file again as a whole.


def signed(value: dict[str, Any]) -> bytes:
    return with_checksum({key: each for key, each in value.items() if key != "sha256"})


def adding_up(manifest: Manifest) -> Manifest:
    """With shards renumbered, all sums right, and no token counts."""
    shards = []
    for index, shard in enumerate(manifest.shards):
        name = shard_name(index, len(manifest.shards))
        files = [structs.replace(file, name=f"{name}.{file.name[-3:]}") for file in shard.files]
        shards.append(structs.replace(shard, name=name, files=tuple(files)))
    totals = Totals.of(shards, manifest.tokenless)
    files = tuple(file for file in manifest.files if file.name != TOKEN_COUNTS_FILE)
    return structs.replace(manifest, shards=tuple(shards), totals=totals, files=files)


def without_a_shard(folder: Path, from_plan: bool, from_files: bool) -> Manifest:
    """Drops the last shard from manifest and folder alike; on request its split, and its file."""
    (folder / TOKEN_COUNTS_FILE).unlink()
    manifest = Manifest.from_bytes((folder / "__manifest").read_bytes())
    last = manifest.shards[-1]
    assert last.split == len(manifest.plan["splits"]) - 1
    plan = dict(manifest.plan)
    del plan["fingerprint"]
    if from_plan:
        plan["splits"] = plan["splits"][:-1]
    if from_files:
        plan["files"] = plan["files"][:-1]
    dropped = adding_up(structs.replace(manifest, shards=manifest.shards[:-1]))
    fingerprint = hashlib.sha256(
        json.dumps(plan, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    ).hexdigest()
    for file in last.files:
        (folder / file.name).unlink()
    for shard, renamed in zip(manifest.shards, dropped.shards, strict=False):
        for file, other in zip(shard.files, renamed.files, strict=True):
            (folder / file.name).rename(folder / other.name)
    return structs.replace(dropped, plan={"fingerprint": fingerprint, **plan})


@pytest.mark.parametrize(
    ("from_plan", "from_files", "message"),
    [
        (False, False, "the plan has 3 splits, and the manifest has 2"),
        (True, False, r"not a whole plan: byte 0 of c\.jsonl is in no split"),
        (True, True, r"__job: the input has 3 files of [0-9]+ bytes; the plan in"),
    ],
)
def test_a_shard_dropped_from_manifest_and_folder_alike(
    made: Made, tmp_path: Path, from_plan: bool, from_files: bool, message: str
) -> None:
    inputs = [write(tmp_path / f"{name}.jsonl", documents(9, seed=5)) for name in "abc"]
    read = InputSettings(tuple(map(str, inputs)), range_bytes=inputs[0].stat().st_size)
    job = replace(made.job, input=read, output=str(tmp_path / "tokens"))
    tokenize.run(job, QUIET)
    folder = Path(job.output)
    damaged = without_a_shard(folder, from_plan, from_files)
    (folder / "__manifest").write_bytes(damaged.to_bytes())
    for full in (False, True):
        asked = VerifySettings((job.output,), full, read if full else None, RUN)
        with pytest.raises(DataError, match=message):
            verify.run(asked, QUIET)
    if from_files:
        # Without __job only the input can tell.
        (folder / "__job").unlink()
        other = structs.replace(damaged, job_fingerprint=UNSET)
        (folder / "__manifest").write_bytes(other.to_bytes())
        with pytest.raises(
            DataError, match=r"c\.jsonl is [0-9,]+ bytes of jsonl here and was miss"
        ):
            verify.run(VerifySettings((job.output,), True, read, RUN), QUIET)


@pytest.mark.parametrize("what", ["documents", "text_bytes", "text_bytes of a shard"])
def test_numbers_that_only_the_input_can_prove(made: Made, tmp_path: Path, what: str) -> None:
    """Of a split without tokens there is no file to compare with."""
    job = replace(made.job, output=str(tmp_path / "tokens"))
    tokenize.run(job, QUIET)
    path = Path(job.output) / "__manifest"
    manifest = Manifest.from_bytes(path.read_bytes())
    row = manifest.tokenless[0]
    if what != "text_bytes of a shard":
        row = structs.replace(row, **{what: getattr(row, what) + 1})
        tokenless = (row, *manifest.tokenless[1:])
        totals = Totals.of(manifest.shards, tokenless)
        path.write_bytes(structs.replace(manifest, tokenless=tokenless, totals=totals).to_bytes())
    else:
        first = manifest.shards[0]
        shards = (structs.replace(first, text_bytes=first.text_bytes - 1), *manifest.shards[1:])
        totals = Totals.of(shards, manifest.tokenless)
        path.write_bytes(structs.replace(manifest, shards=shards, totals=totals).to_bytes())
    verify.run(VerifySettings((job.output,), run=RUN), QUIET)
    with pytest.raises(
        DataError, match=r": the input has [0-9,]+ (documents|text_bytes); __manifest"
    ):
        verify.run(VerifySettings((job.output,), True, job.input, RUN), QUIET)


def test_a_split_that_is_said_to_have_no_tokens(made: Made, tmp_path: Path) -> None:
    job = replace(made.job, output=str(tmp_path / "tokens"))
    tokenize.run(job, QUIET)
    folder = Path(job.output)
    manifest = Manifest.from_bytes((folder / "__manifest").read_bytes())
    first, *rest = manifest.shards
    row = TokenlessSplit(first.split, first.slices, first.documents, first.text_bytes, 0)
    (folder / TOKEN_COUNTS_FILE).unlink()
    for file in first.files:
        (folder / file.name).unlink()
    damaged = adding_up(
        structs.replace(manifest, shards=tuple(rest), tokenless=(row, *manifest.tokenless))
    )
    for shard, renamed in zip(rest, damaged.shards, strict=True):
        for file, other in zip(shard.files, renamed.files, strict=True):
            (folder / file.name).rename(folder / other.name)
    (folder / "__manifest").write_bytes(damaged.to_bytes())
    verify.run(VerifySettings((job.output,), run=RUN), QUIET)
    with pytest.raises(
        DataError, match=r"split 0: has no shard, and its document [0-9]+ has tokens"
    ):
        verify.run(VerifySettings((job.output,), True, job.input, RUN), QUIET)


@pytest.mark.parametrize("what", ["dropped", "doubled", "swapped", "another sum"])
def test_parts_of_counts(made: Made, tmp_path: Path, what: str) -> None:
    shutil.copytree(made.counts.output, tmp_path / "counts")
    path = tmp_path / "counts" / "__manifest"
    value = json.loads(path.read_bytes())
    parts = value["parts"]
    if what == "dropped":
        del parts[3]
    elif what == "doubled":
        parts.insert(3, parts[3])
    elif what == "swapped":
        parts[3:5] = parts[4:2:-1]
    else:
        value["unique_words"] += 1
    path.write_bytes(signed(value))
    message = "the sum of the parts" if what == "another sum" else "a part is missing or repeated"
    with pytest.raises(DataError, match=message):
        read_counts(STORAGE, str(tmp_path / "counts"))

"""Every job with its input and its output on every store: the bytes of a local run."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import stream_by_hand
from command_line import COMMAND, environment, run, run_whole
from killed_jobs import kill_when
from made_text import documents, write
from read_back import tree
from stores import SECRET, USER, Store, s3_options
from web import Web

import bpe_beam
from bpe_beam.errors import DataError
from bpe_beam.jobs import stream_tokenize

pytestmark = pytest.mark.servers

END = "<|endoftext|>"
TRAINED = ("--vocab-size", "600")


@dataclass(frozen=True)
class Made:
    """A corpus, and what the jobs make of it on local disk.

    Attributes:
        folder: Where it all lies.
        data: The corpus, by name.
        results: The files of each folder of results, by its name.
    """

    folder: Path
    data: dict[str, bytes]
    results: dict[str, dict[str, bytes]]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("local")
    files = {"a 1.jsonl": 200, "b.jsonl.gz": 60, "c é.txt": 60, "d.txt.zst": 30}
    for seed, (name, count) in enumerate(files.items()):
        write(folder / "data" / name, documents(count, seed=seed))
    run_jobs(str(folder), str(folder / "data" / "*"))
    data = {name: (folder / "data" / name).read_bytes() for name in files}
    results = {name: tree(folder / name) for name in ("counts", "tok", "tokens")}
    return Made(folder, data, results)


def run_jobs(folder: str, inputs: str, *more: str) -> None:
    """All jobs on this folder, but verify."""
    reading = ("--input", inputs, "--range-bytes", "5KB", *more)
    run_whole("count", *reading, "--output", f"{folder}/counts")
    counts = ("--counts", f"{folder}/counts", *TRAINED, *more)
    run_whole("train", *counts, "--special-token", END, "--output", f"{folder}/tok")
    encoding = ("--tokenizer", f"{folder}/tok/tokenizer.json", "--append", END)
    run_whole("tokenize", *reading, *encoding, "--output", f"{folder}/tokens")


def stored(store: Store, folder: str) -> dict[str, bytes]:
    """Every file below a folder of a store, by relative name."""
    found = store.storage.expand(f"{folder}/**")
    return {
        each.url[len(folder) + 1 :]: store.storage.read_bytes(each.url)
        for each in found
        if not each.url.endswith("/summary.json")
    }


def upload(store: Store, local: Made) -> str:
    """A new folder of a store with the corpus in it."""
    folder = store.folder()
    for name, data in local.data.items():
        store.storage.write_bytes(f"{folder}/data/{name}", data)
    return folder


def test_all_jobs(store: Store, local: Made) -> None:
    folder = upload(store, local)
    run_jobs(folder, f"{folder}/data/*", *store.arguments)
    for name, expected in local.results.items():
        files = {path: data for path, data in expected.items() if data != b"<folder>"}
        assert stored(store, f"{folder}/{name}") == files
    told = ("--input", f"{folder}/data/*", *store.arguments)
    assert run("verify", f"{folder}/tokens", "--full", *told).code == 0
    seen = run("inspect", f"{folder}/tokens", *store.arguments)
    assert seen.code == 0, seen.err
    here = run("inspect", local.folder / "tokens")
    assert seen.out.replace(folder.encode(), str(local.folder).encode()) == here.out
    text = ("some text to encode",)
    here = run("encode", "--tokenizer", local.folder / "tok" / "tokenizer.json", *text)
    url = f"{folder}/tok/tokenizer.json"
    there = run("encode", "--tokenizer", url, *text, *store.arguments)
    assert (there.code, there.out) == (0, here.out)
    assert run("decode", "--tokenizer", url, *there.out.decode().split(), *store.arguments).out


def test_files_that_come_over_time(
    store: Store, local: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two goes, each file once; without a runner that streams, which has no part in this."""
    monkeypatch.setattr(stream_tokenize, "run_pipeline", stream_by_hand.run_pipeline)
    folder = store.folder()
    tokenizer = ("--tokenizer", local.folder / "tok" / "tokenizer.json", "--append", END)
    watching = ("--input", f"{folder}/data/*", "--range-bytes", "5KB", "--runner", "PrismRunner")
    times = ("--window-seconds", "0", "--until-idle-seconds", "0")
    output = ("--output", f"{folder}/windows", *store.arguments)
    tokens = []
    for number, names in enumerate((list(local.data)[:2], list(local.data))):
        for name in names:
            if number == 0 or name not in list(local.data)[:2]:
                store.storage.write_bytes(f"{folder}/data/{name}", local.data[name])
        ran = run_whole("stream-tokenize", *watching, *times, *tokenizer, *output)
        assert (ran.summary["windows"], ran.summary["files"]) == (1, 2)
        tokens.append(ran.summary["tokens"])
        assert run("verify", f"{folder}/windows/window-0000000{number}", *store.arguments).code == 0
    batch = json.loads(local.results["tokens"]["__manifest"])
    assert sum(tokens) == batch["totals"]["tokens"]
    # All windows at once: as the output of a stream, and by a glob.
    windows = f"{folder}/windows"
    assert run_whole("verify", windows, *store.arguments).summary["windows"] == 2
    glob = f"{windows}/window-*"
    assert len(run_whole("verify", glob, *store.arguments).summary["folders"]) == 2
    data = bpe_beam.shards.open(windows, storage_options=store.options)
    assert (data.windows, data.token_count, data.refresh() is data) == (2, sum(tokens), True)
    joined = local.folder / store.name / "joined"
    for number, chosen in enumerate((windows, glob)):
        out = ("--shards", "3", "--output", f"{joined}-{number}", *store.arguments)
        assert run_whole("convert", chosen, *out).summary["tokens"] == sum(tokens)
    shown = run("inspect", windows, *store.arguments)
    assert shown.code == 0, shown.err
    assert re.search(rb"windows finished +2\n", shown.out)


def test_a_shard_that_was_changed_on_the_store_does_not_verify(
    start_store: Callable[[str], Store], local: Made
) -> None:
    store = start_store("versitygw")
    folder = store.folder()
    for name, data in local.results["tokens"].items():
        if data != b"<folder>":
            store.storage.write_bytes(f"{folder}/{name}", data)
    assert run("verify", folder, *store.arguments).code == 0
    shard = next(name for name in local.results["tokens"] if name.endswith(".bin"))
    data = local.results["tokens"][shard]
    store.storage.write_bytes(f"{folder}/{shard}", data[:-1] + bytes([data[-1] ^ 1]))
    assert run("verify", folder, *store.arguments).code == 1


def test_configs_lists_and_summaries_on_a_store(
    start_store: Callable[[str], Store], local: Made
) -> None:
    store = start_store("moto")
    folder = upload(store, local)
    inputs = "\n".join(f"{folder}/data/{name}" for name in local.data)
    store.storage.write_bytes(f"{folder}/inputs", inputs.encode())
    config = f"job: count\ninput: '@{folder}/inputs'\nrange_bytes: 5KB\noutput: {folder}/counts\n"
    store.storage.write_bytes(f"{folder}/count.yaml", config.encode())
    where = f"{folder}/summary of it.json"
    arguments = ("--config", f"{folder}/count.yaml", "--summary-file", where)
    ran = run("count", *arguments, *store.arguments, "--quiet")
    assert ran.code == 0, ran.err
    assert stored(store, f"{folder}/counts") == local.results["counts"]
    assert json.loads(store.storage.read_bytes(where))["job"] == "count"
    ran = run("count", "--config", f"{folder}/none.yaml", *store.arguments)
    assert (ran.code, ran.err) == (
        2,
        f"bpe-beam count: config {folder}/none.yaml cannot be read: No such file or directory\n",
    )


@pytest.mark.parametrize("manner", ["ranges", "whole", "listing", "busy", "cut", "short"])
def test_a_corpus_on_the_web(manner: str, local: Made, tmp_path: Path) -> None:
    if manner == "listing":
        names = ["*"]
    else:
        names = [name.replace(" ", "%20").replace("é", "%C3%A9") for name in local.data]
    with Web(dict(local.data), troubles=1).running() as web:
        reading = ("--input", *(web.url(manner, name) for name in names), "--range-bytes", "5KB")
        tokenizer = ("--tokenizer", local.folder / "tok" / "tokenizer.json", "--append", END)
        run_whole("tokenize", *reading, *tokenizer, "--output", tmp_path / "tokens")
    files = tree(tmp_path / "tokens")
    shards = {name for name in files if name.endswith((".bin", ".idx"))}
    assert shards
    assert {name: files[name] for name in shards} == {
        name: local.results["tokens"][name] for name in shards
    }


def test_an_object_that_changes_between_plan_and_read(local: Made, tmp_path: Path) -> None:
    with Web({"a.jsonl": local.data["a 1.jsonl"]}).running() as web:
        reading = ("--input", web.url("changing", "a.jsonl"), "--range-bytes", "5KB")
        ran = run("count", *reading, "--output", tmp_path / "counts")
    assert ran.code == 1
    assert "changed" in ran.message
    assert not (tmp_path / "counts" / "__manifest").exists()


def finished(store: Store, out: str) -> int:
    """How many shards have receipts: those of the runs that are killed or running, too."""
    with contextlib.suppress(DataError):  # what was listed went meanwhile
        found = [each.url.split("/") for each in store.storage.expand(f"{out}/work/**")]
        return len({p[-1] for p in found if p[-2] == "work" and p[-1].endswith(".json")})
    return 0


@pytest.mark.parametrize(("name", "range_bytes"), [("versitygw", "300"), ("azurite", "1500")])
def test_a_killed_job_goes_on(
    name: str, range_bytes: str, start_store: Callable[[str], Store], local: Made
) -> None:
    # Enough shards for a run to be killed in; Azurite takes far longer for each.
    store = start_store(name)
    folder = upload(store, local)
    reading = ("--input", f"{folder}/data/*", "--range-bytes", range_bytes, *store.arguments)
    tokenizer = ("--tokenizer", str(local.folder / "tok" / "tokenizer.json"), "--append", END)
    undisturbed, killed = f"{folder}/whole", f"{folder}/killed"
    run_whole("tokenize", *reading, *tokenizer, "--output", undisturbed)
    whole = stored(store, undisturbed)
    shards = sum(name.endswith(".bin") for name in whole)
    command = [*COMMAND, "tokenize", *reading, *tokenizer, "--output", killed, "--quiet"]
    for share in (0.1, 0.4):
        assert kill_when(
            command,
            lambda share=share: finished(store, killed) >= share * shards,  # type: ignore[misc]
            f"{share} of all",
        ), "ended before it was killed"
        assert not store.storage.exists(f"{killed}/__manifest")
    resumed = run_whole("tokenize", *reading, *tokenizer, "--output", killed)
    assert stored(store, killed) == whole
    assert resumed.summary["shards_kept_from_before"] >= 0.4 * shards


@pytest.fixture
def wrong(start_store: Callable[[str], Store], local: Made) -> tuple[Store, str]:
    """A store with the corpus in a folder, and the name of that folder."""
    store = start_store("versitygw")
    return store, upload(store, local)


def test_errors_of_a_store_end_the_job_and_say_why(wrong: tuple[Store, str]) -> None:
    store, folder = wrong
    out = ("--output", f"{folder}/out")
    bad = json.dumps(s3_options(store.port, secret="not-the-secret"))
    elsewhere = f"{store.top}-that-is-not-there"
    for args, code, why in (
        (("--input", f"{folder}/data/*", *out, "--storage-options", bad), 1, "cannot"),
        (("--input", f"{elsewhere}/*", *out, *store.arguments), 2, "there is no bucket"),
        (("--input", f"{folder}/data/*", "--output", f"{elsewhere}/out", *store.arguments), 1, ""),
        (("--input", f"{folder}/nothing", *out, *store.arguments), 2, "no file matches"),
    ):
        ran = run("count", *args)
        assert ran.code == code, ran.err
        assert ran.err.startswith("bpe-beam count: ")
        assert ran.err.count("\n") == 1
        assert why in ran.err
        assert "not-the-secret" not in ran.err


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_no_secret_is_shown_or_kept(
    debug: tuple[str, ...], wrong: tuple[Store, str], tmp_path: Path
) -> None:
    store, folder = wrong
    arguments, env = (*store.arguments, *debug), environment()
    out, summary = f"{folder}/out", tmp_path / "summary.json"
    args = ["--input", f"{folder}/data/*", "--output", out, "--summary-file", str(summary)]
    good = subprocess.run(
        [*COMMAND, "count", *args, *arguments],
        capture_output=True,
        env=env,
        check=False,
        timeout=600,
    )
    assert good.returncode == 0, good.stderr
    texts = [good.stdout, good.stderr, summary.read_bytes(), *stored(store, out).values()]
    quoted = urllib.parse.quote(SECRET, safe="")
    with Web({"small": b"text"}).running() as web:
        there = f"{web.url('secret', 'small')}?sig={quoted}"
        for job, *more in (
            ("count", "--input", f"{folder}/data/*", "--output", f"{store.top}-not-there/out"),
            ("count", "--input", there, "--output", str(tmp_path / "none")),
            (
                *("count", "--input", there.replace("//", f"//me:{quoted}@", 1)),
                *("--output", f"{folder}/none"),
            ),
            ("count", "--input", f"{folder}/data/*", "--output", there),
            ("count", "--input", f"{folder}/data/*", "--dry-run", "--output", f"{folder}/none"),
            ("plan", "--input", there),
            ("inspect", there),
            ("doctor", folder, there),
        ):
            ran = subprocess.run(
                [*COMMAND, job, *more, *arguments],
                capture_output=True,
                env=env,
                check=False,
                timeout=600,
            )
            assert ran.returncode in (0, 1, 2), more
            texts += [ran.stdout, ran.stderr]
    for text in texts:
        assert SECRET.encode() not in text
        assert b"hunter2" not in text
        assert USER.encode() not in text

"""Measure what jobs cost on corpora of many sizes, and compare it with `--dry-run --cluster`.

    python benchmarks/scale.py english.jsonl.gz --gigabytes 0.1 0.3 1 3 --log rows.jsonl
    python benchmarks/scale.py --fit rows.jsonl
    python benchmarks/scale.py --table

The text is made by `growing_words.py`, in files of 50 MB; `--file-bytes` and `--range-bytes` make
other files and splits. The corpus and all outputs are on an S3 server on this machine. Each job
runs with two workers in a process of its own: `count`, `train`, `rounds`, which is `train` in merge
rounds, `tokenize`, and `arrange`, which is `tokenize` with packing and a seed. Then the same
command predicts it, from a sample.

A row has measured values and, after a slash, predicted ones: processor seconds of the process, of
which in the steps; bytes and requests of the store's client; and the peak of resident memory.
The pace of the machine is measured while a job and its dry run run; predicted seconds are scaled to
the job's pace, but for the stages in the log. `--fit` prints the constants of the store's client
that fit the rows of a log best, for `bpe_beam/jobs/dry_run/costs.py`.
`--table` prints the tables of 1 TB and 15 TB in docs/scale.md, which has their assumptions. Linux
only.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from growing_words import FILE_BYTES, Growth, texts_of, write

from bpe_beam.engines.steps import PROCESSOR_TIME
from bpe_beam.jobs.dry_run import costs
from bpe_beam.jobs.dry_run.cluster import RUNNER, prediction, read_prices
from bpe_beam.jobs.dry_run.pace import Pace
from bpe_beam.messages import format_bytes
from bpe_beam.settings.cluster import Cluster
from bpe_beam.shards.shard_rows import SHARD_TOKENS
from bpe_beam.storage import Storage

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

VOCABULARY = 32_000
SEQUENCES = ("--sequence-length", 2048, "--packing", "best_fit", "--shuffle-seed", 7)
CLUSTER = "workers=1,cores=2,latency=0,start=0"
PRICES = Path(__file__).parents[1] / "configs" / "cluster" / "prices.yaml"

# The text that the tables of large corpora assume, as it was measured with 1 to 3 GB.
UNIQUE_OF_GB, POWER, WORD_BYTES = 2.6e6, 0.6, 10
BLOCKS_OF_GB = 55e6  # of the words of a split of 1 GB
TOKENS_A_BYTE = 0.217
DRIVER_MEMORY = 8 * 10**9
# Processor seconds of a byte at pace 1: of blocks in parts, of text in tokens, and of text that is
# measured, ordered, and written again.
WRITE_PART_SECONDS, TOKENIZE_SECONDS = 17e-9, 12.6e-9
ARRANGE_SECONDS = (0.45e-9, 5.0e-9, 4.2e-9)

Row = dict[str, Any]


# ---- in the process of a job ----


def count_traffic() -> Counter[str]:
    """Count the requests of the S3 client of this process, and their bytes, from now on."""
    from aiobotocore.httpsession import AIOHTTPSession

    traffic: Counter[str] = Counter()
    send = AIOHTTPSession.send

    async def counted(self: Any, request: Any) -> Any:
        answer = await send(self, request)
        traffic["requests"] += 1
        traffic["written_bytes"] += int(request.headers.get("Content-Length") or 0)
        if request.method != "HEAD":
            traffic["read_bytes"] += int(answer.headers.get("Content-Length") or 0)
        return answer

    AIOHTTPSession.send = counted
    return traffic


def run_here(out: str, words: list[str]) -> int:
    """Run `bpe-beam`, and write what it took to a file."""
    traffic = count_traffic()
    from bpe_beam.cli.main import main as command

    code = command(words)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    status = Path("/proc/self/status").read_text().split("VmHWM:")[1]
    taken = {
        "processor_seconds": sum(each.ru_utime + each.ru_stime for each in used),
        "memory_bytes": int(status.split()[0]) * 1024,
        **traffic,
    }
    Path(out).write_text(json.dumps(taken))
    return code


# ---- the rows ----


def run(*words: object) -> Row:
    """Run `bpe-beam` in a process of its own; return its summary and what it took."""
    with tempfile.TemporaryDirectory() as folder:
        out, summary = Path(folder, "row"), Path(folder, "summary")
        command = [sys.executable, __file__, "--here", out, *words, "--summary-file", summary]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        with Pace() as pace:
            subprocess.run([*map(str, command), "--quiet"], check=True, env=environment)
        return {
            **json.loads(out.read_text()),
            "summary": json.loads(summary.read_text()),
            "pace": pace.mean,
        }


def row_of(job: str, gigabytes: float, words: Sequence[object]) -> Row:
    """Return what a job took, and what its dry run predicts."""
    row = {"job": job, "gigabytes": gigabytes, **run(*words)}
    measured = (row["summary"].get("distributions") or {}).items()
    row["steps"] = {
        k.removesuffix(PROCESSOR_TIME): v["sum"] / 1e6
        for k, v in measured
        if k.endswith(PROCESSOR_TIME)
    }
    dry = run(*words, "--dry-run", "--cluster", CLUSTER)
    said, row["dry_run_pace"] = dry["summary"], dry["pace"]
    said["cluster_stages"].pop(RUNNER, None)  # which these jobs do not have
    stages = said["cluster_stages"].values()
    names = ("processor_seconds", "requests", "read_bytes", "written_bytes")
    row["predicted"] = {name: sum(stage[name] for stage in stages) for name in names}
    row["predicted"]["processor_seconds"] *= row["pace"] / row["dry_run_pace"]
    row["predicted_stages"] = said["cluster_stages"]
    row["predicted"]["memory_bytes"] = max(
        said["cluster"]["worker_memory_bytes"], said["cluster"]["driver_memory_bytes"]
    )
    return row


def rows(arguments: argparse.Namespace, store: Any, growth: Growth) -> Iterator[Row]:
    """Yield the rows of all sizes, the smallest first."""
    top, tokenizer, copied = store.folder(), "", 0
    for gigabytes in sorted(arguments.gigabytes):
        size = round(gigabytes * 1e9)
        paths = write(arguments.folder, growth, size, arguments.file_bytes)
        for path in paths[copied:]:
            with path.open("rb") as file, store.storage.create(f"{top}/corpus/{path.name}") as out:
                while data := file.read(1 << 20):
                    out.write(data)
        copied = max(copied, len(paths))
        inputs = Path(arguments.folder, f"inputs-{gigabytes:g}")
        inputs.write_text("\n".join(f"{top}/corpus/{path.name}" for path in paths))
        reading: list[object] = ["--input", f"@{inputs}", "--workers", 2]
        if arguments.range_bytes:
            reading += ["--range-bytes", arguments.range_bytes]
        counts, trained = f"{top}/counts-{gigabytes:g}", f"{top}/trained-{gigabytes:g}"
        tokenizer = tokenizer or f"{trained}/tokenizer.json"
        outputs = {"count": counts, "train": trained}
        training: list[object] = ["train", "--counts", counts, "--vocab-size", VOCABULARY]
        jobs: dict[str, list[object]] = {
            "count": ["count", *reading],
            "train": training,
            "rounds": [*training, "--merge-rounds", "distributed", "--driver-memory", "500MB"],
            "tokenize": ["tokenize", "--tokenizer", tokenizer, *reading],
            "arrange": ["tokenize", "--tokenizer", tokenizer, *reading, *SEQUENCES],
        }
        for job, words in jobs.items():
            output = outputs.get(job, f"{top}/{job}-{gigabytes:g}")
            yield row_of(job, gigabytes, [*words, "--output", output, *store.arguments])
            if job not in outputs:  # these are large
                store.file_system().rm(output.removeprefix("s3://"), recursive=True)


def line(row: Row) -> str:
    """Return the figures of a row."""
    cells = [
        f"{row['job']:9}{row['gigabytes']:6g}{row['pace']:6.2f}{row['dry_run_pace']:6.2f}"
        f"{sum(row['steps'].values()):8.1f}"
    ]
    for name, unit in {
        **{"processor_seconds": 1, "read_bytes": 1e6, "written_bytes": 1e6},
        **{"requests": 1, "memory_bytes": 1e6},
    }.items():
        measured, said = row[name] / unit, row["predicted"][name] / unit
        cells.append(f"{measured:9.0f} /{said:7.0f} {said / measured:5.2f}")
    return "".join(cells)


# ---- the constants ----


def fitted(measured: Sequence[Row]) -> tuple[float, float, float]:
    """Return the seconds of a start, a request and a byte that fit rows best, by least squares.

    They take the processor time that is not in the steps, on a machine whose pace is 1; relative
    errors count. A training learns in no step, so it is left out.
    """
    chosen = [row for row in measured if row["job"] not in ("train", "rounds")]
    rest = np.array(
        [(row["processor_seconds"] - sum(row["steps"].values())) / row["pace"] for row in chosen]
    )
    terms = np.array(
        [[1.0, row["requests"], row["read_bytes"] + row["written_bytes"]] for row in chosen]
    )
    scale = np.abs(terms).max(axis=0)
    solved = np.linalg.lstsq(terms / scale / rest[:, None], np.ones(len(rest)), rcond=None)[0]
    start, request, byte = (float(each) for each in solved / scale)
    return start, request, byte


# ---- the tables of docs/scale.md ----


def large_corpus(terabytes: int) -> dict[str, dict[str, costs.Stage]]:
    """Return the stages of each job over text like the measured text, in files of 100 MB."""
    text = terabytes * 10**12
    corpus = costs.Corpus(text // 10**8, text // 10**9, text, text)
    unique = round(UNIQUE_OF_GB * (text / 1e9) ** POWER)
    word_bytes = WORD_BYTES * unique
    rounds = costs.usual_rounds(VOCABULARY, word_bytes, DRIVER_MEMORY)
    blocks = corpus.splits * round(BLOCKS_OF_GB)
    counting = costs.counting_seconds(text, blocks, corpus.splits), WRITE_PART_SECONDS * blocks
    shard_bytes, tokens = round(2 * TOKENS_A_BYTE * text), TOKENS_A_BYTE * text
    tokenize = costs.tokenize_stages(corpus, TOKENIZE_SECONDS * text, shard_bytes, VOCABULARY)

    def arrange(shard_tokens: int) -> dict[str, costs.Stage]:
        seconds = tuple(each * text for each in ARRANGE_SECONDS)
        shards = ceil(tokens / shard_tokens)
        memory = costs.new_shard_memory(shard_tokens, VOCABULARY)
        return tokenize | costs.arrange_stages(
            "s3://", corpus, seconds, shard_bytes, shards, memory
        )

    return {
        "`count`": costs.count_stages(corpus, counting, blocks, unique, 7 * unique),
        f"`train` in {rounds} rounds": costs.rounds_stages(word_bytes, rounds, DRIVER_MEMORY),
        "`tokenize`": tokenize,
        "... packed and shuffled": arrange(SHARD_TOKENS),
        "... with `--shard-tokens 512M`": arrange(512 * 10**6),
    }


def table() -> None:
    """Print the tables of large corpora in Markdown."""
    prices = read_prices(Storage(), str(PRICES))
    for terabytes in (1, 15):
        jobs = large_corpus(terabytes)
        clusters = [Cluster(n, 8, memory=32 * 10**9, prices=str(PRICES)) for n in (10, 100, 500)]
        head = f"| {terabytes} TB | processor h | requests | read | written | a worker | driver |"
        print(head + "".join(f" {each.workers} workers |" for each in clusters))
        print("|---" * (7 + len(clusters)) + "|")
        for name, stages in jobs.items():
            said = [prediction(stages, each, prices, 0) for each in clusters]
            rows_of_stages = said[0]["cluster_stages"].values()
            read, written = (
                format_bytes(sum(row[name] for row in rows_of_stages))
                for name in ("read_bytes", "written_bytes")
            )
            whole = said[0]["cluster"]
            cells = [name, f"{whole['processor_seconds'] / 3600:,.1f}"]
            cells += [f"{whole['requests'] / 1e6:,.2g} M", read, written]
            cells += [format_bytes(whole[f"{who}_memory_bytes"]) for who in ("worker", "driver")]
            cells += [
                f"{row['cluster']['seconds'] / 3600:,.1f} h, {row['cluster_price']['total']:,.0f}"
                for row in said
            ]
            print(f"| {' | '.join(cells)} |")


def main() -> int:
    """Measure all sizes, or fit the constants to what was measured."""
    if sys.argv[1:2] == ["--here"]:
        return run_here(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", type=Path, nargs="*")
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[0.1, 0.3, 1])
    parser.add_argument("--folder", type=Path, help="of the corpus, which is kept")
    parser.add_argument("--range-bytes")
    parser.add_argument("--file-bytes", type=int, default=FILE_BYTES)
    parser.add_argument("--log", type=Path, help="gets the rows as JSON")
    parser.add_argument("--fit", type=Path, help="a log")
    parser.add_argument("--table", action="store_true", help="print the tables of large corpora")
    arguments = parser.parse_args()
    if arguments.table:
        table()
        return 0
    if arguments.fit is not None:
        log = [json.loads(each) for each in arguments.fit.read_text().splitlines()]
        start, request, byte = fitted(log)
        print(f"start {start:.2f} s, request {request * 1e3:.2f} ms, GB {byte * 1e9:.2f} s")
        return 0
    from stores import versitygw

    heads = ("processor s", "MB read", "MB written", "requests", "memory, MB")
    print(
        f"{'job':9}{'GB':>6}{'pace':>6}{'dry':>6}{'steps':>8}"
        + "".join(f"{head:>24}" for head in heads),
        flush=True,
    )
    with tempfile.TemporaryDirectory() as temporary:
        arguments.folder = arguments.folder or Path(temporary, "corpus")
        with versitygw(Path(temporary, "store")) as store:
            for row in rows(arguments, store, Growth(texts_of(arguments.texts))):
                print(line(row), flush=True)
                if arguments.log:
                    with arguments.log.open("a") as log_file:
                        log_file.write(json.dumps(row) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

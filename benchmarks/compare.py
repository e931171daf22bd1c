"""Compare this package with others: training, tokenizing, encoding, decoding, and by size.

    python benchmarks/compare.py FOLDER [--rows train tokenize encode decode sizes] [--runs 5]
    python benchmarks/report.py benchmarks/results/COMMIT.json

Run it with the interpreter that has this package. FOLDER gets everything that is downloaded and
made: corpora (benchmarks/corpora.py), environments of the other packages and published tokenizers
(benchmarks/peers.py). Results go to benchmarks/results/COMMIT.json after every run, with machine,
commit and versions; an interrupted comparison continues where it stopped, and rows can be run one
group at a time. Linux only.

Groups of rows:
- train: whole processes, JSON Lines to a vocabulary of 32,000, each corpus, all trainers; and to
  WordPiece in BERT's manner.
- tokenize: whole processes, JSON Lines to ids by GPT-2's tokenizer: bpe-beam's Megatron shards;
  gigatoken's encode_files and one write. Also a corpus of 5 GB.
- encode: one process, one thread: load, first text, a cold and a warm pass; corpora, tokenizers.
- decode: one process, one thread, a batch of documents.
- sizes: count and tokenize from 1 MB to --largest, train to 1 GB; gigatoken from 100 MB, as far as
  the machine's memory allows.

Equality comes first: the ids, texts or vocabularies of the first run are compared with the row's
reference (the first of tiktoken, tokenizers and bpe-beam that takes part; where it is too slow for
all of the text, with what most contestants say of the rest), and a contestant whose answer differs
is recorded, but has no times. A vocabulary may differ in 1 % of its tokens, since
trainers have their own rules for ties; the share is recorded. SentencePiece trains by another
algorithm and is not compared.

Contestants take turns, so that a machine whose speed drifts treats them alike. A run has wall and
CPU seconds (of the process and what it starts) and peak memory (of its largest process). Whole
processes may use --threads CPUs.

bpe-beam and gigatoken always process a corpus whole, --runs times, until they have used --seconds
of a row. Rows of `sizes`, and of tokenizers other than GPT-2's, have three runs. The others would
take hours. They have these limits, which the tables show:
- After --once seconds of a row a contestant has no more runs.
- A run of more than --stop seconds is stopped, and has no times.
- tiktoken and tokenizers 0.23 encode the first 10 MB of a corpus. Their ids are compared with those
  that the others have for these documents.
- With tokenizers other than GPT-2's, fastokens, tokenizers and tiktoken have one run.

All of it takes about 45 minutes on two cores, 25 GB of disk and 20 GB of memory; without `sizes`
and the corpus of 5 GB half an hour, and 3 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import corpora
import peers

# Only the standard library: the kernel counts this process's memory as a child's at its start.

HERE = Path(__file__).parent
OURS = "bpe-beam"
OWN_ALGORITHM = "sentencepiece"
VOCAB_SIZE = 32_000
BERT = "bert"
BERT_CONFIG = str(HERE.parent / "configs" / "wordpiece_30k.yaml")
BERT_SIZE = 30_522
LEAST_AGREEMENT = 0.99
TRAIN_MEGABYTES = 1_000
"""The largest mixed corpus to train on: of more text training is little more than counting."""

LEAST_PEER_MEGABYTES = 100
"""The smallest mixed corpus for the peer, which learns from less for minutes."""

PREFIX_MEGABYTES = 10
"""The text that slow encoders encode, from the start of a corpus."""

DECODE_MEGABYTES = 20

CORPORA = ("english", "languages", "help", "chinese", "code")
TRAINERS = (OURS, "gigatoken", "tokenizers-0.23", "rustbpe", OWN_ALGORITHM)
ENCODERS = (
    OURS, f"{OURS}, Arrow", "gigatoken", "fastokens", "tokenizers-1.0", "tiktoken",
    "tokenizers-0.23",
)  # fmt: skip
NAMED_ENCODERS = (OURS, "gigatoken", "fastokens", "tokenizers-1.0", "tiktoken")
FEWER_RUNS = 3
"""Runs of rows of other tokenizers than GPT-2's, and of curves over size."""

SLOW_ENCODERS = ("tiktoken", "tokenizers-0.23")
REPEATED = (OURS, f"{OURS}, Arrow", "gigatoken")
REFERENCES = ("tiktoken", "tokenizers-0.23", "tokenizers-1.0", OURS)
GROUPS = ("train", "tokenize", "encode", "decode", "sizes")


class Row(NamedTuple):
    """What is measured together.

    Attributes:
        task: count, train, tokenize, encode or decode.
        corpus: The name of a corpus; `mixed-N` has N MB.
        tokenizer: The name of a tokenizer, if the task needs one; to train, `bert` or none.
        contestants: Who takes part.
        most_runs: The most runs of a contestant.
    """

    task: str
    corpus: str
    tokenizer: str | None
    contestants: tuple[str, ...]
    most_runs: int = 1_000


class Run(NamedTuple):
    """One run of a contestant.

    Attributes:
        figures: Wall and CPU seconds by phase, and peak memory in bytes.
        output: What it printed.
        problem: Why it failed, if it did.
    """

    figures: dict[str, Any]
    output: str
    problem: str | None


def size_name(megabytes: float) -> str:
    """Return the name of the mixed corpus of a size."""
    return f"mixed-{megabytes:g}"


def rows_of(group: str, largest: float) -> list[Row]:
    """Return the rows of a group.

    Args:
        group: One of GROUPS.
        largest: MB of the largest mixed corpus.
    """
    if group == "train":
        found = [Row("train", corpus, None, TRAINERS) for corpus in CORPORA]
        return [*found, Row("train", "english", BERT, (OURS, "tokenizers-0.23"))]
    if group == "tokenize":
        two = (OURS, "gigatoken")
        small = (*two, "tokenizers-1.0", "tokenizers-0.23")
        return [
            Row("tokenize", "english", "gpt2", small),
            *(Row("tokenize", corpus, "gpt2", two) for corpus in CORPORA[1:]),
            Row("tokenize", size_name(min(5_000, largest)), "gpt2", two),
        ]
    if group == "encode":
        found = [Row("encode", corpus, "gpt2", ENCODERS) for corpus in CORPORA]
        found += [
            Row("encode", corpus, tokenizer, NAMED_ENCODERS, FEWER_RUNS)
            for tokenizer in peers.TOKENIZERS[1:]
            for corpus in CORPORA
        ]
        bert = tuple(name for name in ENCODERS if name.startswith((OURS, "tokenizers")))
        return [*found, Row("encode", "english", BERT, bert)]
    if group == "decode":
        return [Row("decode", corpus, "gpt2", ENCODERS) for corpus in ("english", "languages")]
    rows = []
    for size in corpora.mixed_sizes(largest):
        corpus = size_name(size)
        both = (OURS, "gigatoken") if size >= LEAST_PEER_MEGABYTES else (OURS,)
        rows += [Row("count", corpus, None, (OURS,)), Row("tokenize", corpus, "gpt2", both)]
        rows += [Row("train", corpus, None, both)] * (size <= TRAIN_MEGABYTES)
    return [row._replace(most_runs=FEWER_RUNS) for row in rows]


def machine() -> dict[str, Any]:
    """Return what the results depend on of this machine."""
    cpu = Path("/proc/cpuinfo").read_text().partition("model name")[2].partition("\n")[0]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu.lstrip("\t: ") or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e9),
        "system": platform.system() + " " + platform.release().partition("-")[0],
        "python": platform.python_version(),
    }


def commit() -> str:
    """Return the last commit that changed the package, and `-changed` if files differ from it.

    Outside a clone it is `unknown`.
    """

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=HERE, check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout.strip()

    package = ("--", "../bpe_beam", "../setup.py")
    try:
        changed = git("status", "--porcelain", "-uno", *package)
        return git("log", "-1", "--format=%H", *package)[:12] + ("-changed" if changed else "")
    except (subprocess.CalledProcessError, FileNotFoundError):
        return "unknown"


class Results:
    """The results file, which is written anew after each run."""

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        """Read the file, or begin it.

        Args:
            path: The file.
            head: Commit, machine and settings, which must be the file's.
        """
        self.path = path
        self.content: dict[str, Any] = {**head, "versions": {}, "corpora": {}, "rows": []}
        if path.exists():
            self.content = json.loads(path.read_text())
            for name, value in head.items():
                if self.content[name] != value:
                    sys.exit(f"{path}: {name} must be {self.content[name]}, got {value}")

    def entry(self, row: Row, contestant: str) -> dict[str, Any]:
        """Return the entry of a contestant in a row, a new one if there is none.

        Args:
            row: The row.
            contestant: The contestant.
        """
        key = {"task": row.task, "corpus": row.corpus, "tokenizer": row.tokenizer}
        key["contestant"] = contestant
        for entry in self.content["rows"]:
            if all(entry[name] == value for name, value in key.items()):
                return entry
        made: dict[str, Any] = {**key, "status": "ok", "runs": []}
        self.content["rows"].append(made)
        return made

    def save(self) -> None:
        """Write the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(self.content, indent=1) + "\n")
        unfinished.rename(self.path)


def run(command: list[str], environment: dict[str, str], limit: float) -> Run:
    """Run a command, and measure it. It may allocate as much memory as is free.

    Python keeps compiled modules, as in installed packages, whatever this process does.

    Args:
        command: The command line.
        environment: Variables to set.
        limit: Seconds after which it is stopped.
    """
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment}
    free = int(Path("/proc/meminfo").read_text().partition("MemAvailable:")[2].split()[0]) * 1024
    # By the shell: a function for the new process would run between fork and exec, where threads of
    # this process, such as gRPC's, can break it.
    limited = ["sh", "-c", 'ulimit -d "$0" && exec "$@"', str(free // 1024), *command]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        process = subprocess.Popen(limited, stdout=out, stderr=err, env=environment)
        killer = threading.Timer(limit, process.kill)
        killer.start()
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:  # such as Ctrl-C
            process.kill()
            raise
        finally:
            killer.cancel()
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        output, message = out.read().decode(), err.read().decode("utf-8", "replace").strip()
    problem = None
    if process.returncode:
        last = message.splitlines()[-1] if message else f"exit code {process.returncode}"
        problem = f"over {limit:g} s" if wall >= limit else f"failed: {last}"
        if any(words in message for words in ("memory allocation of", "MemoryError", "bad_alloc")):
            problem = f"needs over {free / 1e9:.0f} GB"
    cpu = used.ru_utime + used.ru_stime
    figures = {"wall": {"all": wall}, "cpu": {"all": cpu}, "peak": used.ru_maxrss * 1024}
    return Run(figures, output, problem)


def most_usual(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return each part of an answer as most of them have it; the first one among equals.

    A slow reference has only a part of the answer, and another one may be wrong in the rest.

    Args:
        answers: The answers that agree with the reference, answers of references first.
    """
    parts = dict.fromkeys(part for answer in answers for part in answer)
    found = {part: [json.dumps(a[part]) for a in answers if part in a] for part in parts}
    return {part: json.loads(statistics.mode(values)) for part, values in found.items()}


class Comparison:
    """The rows, measured in turns.

    Args:
        arguments: The command line's.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.folder: Path = arguments.folder.resolve()
        self.pythons = dict(pair.split("=", 1) for pair in arguments.python)
        name = commit() if arguments.set == "report" else f"{commit()}-tune"
        self.results = Results(
            arguments.results or HERE / "results" / f"{name}.json",
            {
                "commit": commit(),
                "machine": machine(),
                "settings": {
                    name: getattr(arguments, name) for name in ("set", "threads", "megabytes")
                },
            },
        )
        self.threads = {
            name: str(arguments.threads)
            for name in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "BENCHMARK_THREADS")
        }

    def files(self, corpus: str) -> list[str]:
        """Return the files of a corpus.

        Args:
            corpus: Its name.
        """
        folder = self.folder / "corpora"
        if not corpus.startswith("mixed-"):
            return [str(folder / f"{corpus}-{self.arguments.set}.jsonl")]
        largest = self.arguments.largest
        count = 1 + [size_name(size) for size in corpora.mixed_sizes(largest)].index(corpus)
        return [str(folder / size_name(largest) / f"part-{i}.jsonl") for i in range(count)]

    def python(self, contestant: str) -> str:
        """Return the interpreter of a contestant."""
        if contestant.startswith(OURS):
            return sys.executable
        return self.pythons.get(contestant) or str(peers.interpreter(self.folder, contestant))

    def tokenizer(self, name: str) -> str:
        """Return the file of a tokenizer."""
        return str(self.folder / "tokenizers" / f"{name}.json")

    def prepare(self, rows: list[Row]) -> None:
        """Make what rows need and is not there.

        Args:
            rows: The rows.
        """
        names = {row.corpus.partition("-")[0] for row in rows}
        for name in sorted(names):
            command = [sys.executable, str(HERE / "corpora.py"), str(self.folder / "corpora")]
            command += [
                "--kinds",
                name,
                "--sets",
                "report" if name == "mixed" else self.arguments.set,
            ]
            if name == "mixed":
                command += ["--megabytes", str(self.arguments.largest)]
            subprocess.run(command, check=True)
        contestants = {name for row in rows for name in self.chosen(row)}
        wanted = sorted(contestants & set(peers.PEERS) - set(self.pythons))
        published = sorted({row.tokenizer for row in rows} & set(peers.TOKENIZERS))
        installing = [sys.executable, str(HERE / "peers.py"), str(self.folder)]
        installing += ["--only", *wanted, "--tokenizers", *published]
        subprocess.run(installing, check=True)
        bert = Path(self.tokenizer(BERT))
        encoding = any(row.tokenizer == BERT and row.task == "encode" for row in rows)
        if encoding and not bert.exists():
            made = self.folder / "tokenizers" / BERT
            command = [sys.executable, "-m", "bpe_beam", "train", "--overwrite", "--quiet"]
            command += ["--config", BERT_CONFIG]
            command += ["--input", *self.files("english"), "--output", str(made)]
            subprocess.run(command, check=True)
            (made / "tokenizer.json").rename(bert)
        for row in rows:
            size = sum(Path(path).stat().st_size for path in self.files(row.corpus))
            self.results.content["corpora"][row.corpus] = {"bytes": size}

    def chosen(self, row: Row) -> list[str]:
        """Return the contestants of a row that were asked for."""
        only = self.arguments.contestants
        return [name for name in row.contestants if only is None or name in only]

    def contestant_task(self, task: str, contestant: str, settings: dict[str, Any]) -> list[str]:
        """Return the command of a task of contestants.py.

        Args:
            task: The task.
            contestant: The contestant.
            settings: The task's arguments.
        """
        script = str(HERE / "contestants.py")
        return [self.python(contestant), script, task, contestant, json.dumps(settings)]

    def command(self, row: Row, contestant: str, output: Path) -> list[str]:
        """Return the command that is measured.

        Args:
            row: The row.
            contestant: The contestant.
            output: A file or folder that it may make.
        """
        paths = self.files(row.corpus)
        if row.task in ("encode", "decode"):
            settings = {"paths": paths, "tokenizer": self.tokenizer(str(row.tokenizer))}
            size = self.arguments.megabytes
            if row.task == "decode":
                size = min(size, DECODE_MEGABYTES)
            else:
                settings["prefix"] = prefix = min(size, PREFIX_MEGABYTES)
                size = prefix if contestant in SLOW_ENCODERS else size
            return self.contestant_task(row.task, contestant, {**settings, "megabytes": size})
        if contestant != OURS:
            wordpiece = row.tokenizer == BERT
            size = BERT_SIZE if wordpiece else VOCAB_SIZE
            special: dict[str, Any] = {"vocab_size": size, "wordpiece": wordpiece}
            if row.task == "tokenize":
                special = {"tokenizer": self.tokenizer(str(row.tokenizer))}
            settings = {"paths": paths, "output": str(output), **special}
            return self.contestant_task(row.task, contestant, settings)
        ours = [sys.executable, "-m", "bpe_beam", row.task, "--quiet", "--input", *paths]
        ours += ["--output", str(output), "--workers", str(self.arguments.threads)]
        if row.task == "train":
            size = ["--vocab-size", str(VOCAB_SIZE)]
            ours += ["--config", BERT_CONFIG] if row.tokenizer == BERT else size
        if row.task == "tokenize":
            ours += ["--tokenizer", self.tokenizer(str(row.tokenizer))]
        return ours

    def measure(self, row: Row, contestant: str, entry: dict[str, Any]) -> None:
        """Run a contestant once, and add the run to its entry, with its answer if it is the first.

        Args:
            row: The row.
            contestant: The contestant.
            entry: The contestant's entry.
        """
        output = self.folder / "output"
        shutil.rmtree(output, ignore_errors=True)
        output.unlink(missing_ok=True)
        one = row.task in ("encode", "decode")
        threads = dict.fromkeys(self.threads, "1") if one else self.threads
        if not one:  # children inherit it
            every = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, every[: self.arguments.threads])
        limit = self.arguments.limit if contestant in REPEATED else self.arguments.stop
        done = run(self.command(row, contestant, output), threads, limit)
        if not one:
            os.sched_setaffinity(0, every)
        if done.problem is None:
            figures = {**done.figures, "load": os.getloadavg()[0]}
            figures["process"] = done.figures["wall"]["all"]
            answer: dict[str, Any] | None = None
            if one:
                shown = json.loads(done.output.splitlines()[-1])
                figures |= {"wall": shown["wall"], "cpu": shown["cpu"], "bytes": shown["bytes"]}
                answer = shown["answer"]
            elif not entry["runs"] and len(self.chosen(row)) > 1:
                answer = self.answer(row, contestant, output)
            self.note_version(contestant, done.output)
            entry["runs"].append(figures)
            entry.setdefault("answer", answer)
            print(
                f"  {contestant:18} {figures['process']:9.2f} s {figures['peak'] / 1e6:9.0f} MB",
                flush=True,
            )
        else:
            entry["status"] = done.problem
            print(f"  {contestant:18} {entry['status']}", flush=True)

    def note_version(self, contestant: str, output: str) -> None:
        """Record the version that a contestant printed.

        Args:
            contestant: The contestant.
            output: What it printed; bpe-beam's commands print none.
        """
        last = (output.splitlines() or [""])[-1]
        if last.startswith("{") and not contestant.startswith(OURS):
            self.results.content["versions"][contestant] = json.loads(last)["version"]

    def answer(self, row: Row, contestant: str, output: Path) -> dict[str, Any] | None:
        """Return what is compared of a whole process's output.

        Args:
            row: The row.
            contestant: The contestant.
            output: Its output.
        """
        if row.task == "tokenize":
            command = self.contestant_task("tokenized", contestant, {"output": str(output)})
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            shown = json.loads(done.stdout.splitlines()[-1])
            return {"tokens": shown["tokens"], "sha256": shown["sha256"]}
        if row.task == "train":
            kept = self.folder / "answers" / f"{row.corpus}-{row.tokenizer}-{contestant}.tokens"
            kept.parent.mkdir(exist_ok=True)
            if contestant == OURS:
                command = self.contestant_task("trained", contestant, {"output": str(output)})
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                output = Path(f"{output}.tokens")
            shutil.move(output, kept)
            return {"file": kept.name}
        return None

    def judge(self, row: Row, entries: dict[str, dict[str, Any]]) -> None:
        """Compare the answers of a row; drop the times of those that differ from the reference.

        Args:
            row: The row.
            entries: The entries of its contestants.
        """
        answered = {name: entry for name, entry in entries.items() if entry.get("answer")}
        references = [name for name in REFERENCES if name in answered]
        expected: dict[str, Any] = {}

        def differs(answer: dict[str, Any]) -> bool:
            return any(expected.get(part, has) != has for part, has in answer.items())

        if references and row.task != "train":
            expected |= answered[references[0]]["answer"]
            names = dict.fromkeys([*references, *answered])
            agreeing = [answered[name]["answer"] for name in names]
            expected |= most_usual([answer for answer in agreeing if not differs(answer)])
        for name, entry in answered.items() if references else ():
            wrong = differs(entry["answer"])
            if row.task == "train":
                kept = answered[references[0]]["answer"]["file"]
                share = self.agreement(kept, entry["answer"]["file"])
                entry["agreement"] = None if name == OWN_ALGORITHM else share
                wrong = name != OWN_ALGORITHM and share < LEAST_AGREEMENT
            if wrong:
                judge = references[0]
                if (
                    row.task != "train"
                    and answered[judge]["answer"].items() <= entry["answer"].items()
                ):
                    judge = "most others"
                entry["status"] = f"differs from {judge}"
                entry["runs"] = []
                print(f"  {name:18} {entry['status']}", flush=True)

    def agreement(self, one: str, other: str) -> float:
        """Return the share of the tokens of one vocabulary that the other has too.

        Args:
            one: The name of a file of tokens.
            other: Another one.
        """
        first, second = (
            set((self.folder / "answers" / name).read_text().split()) for name in (one, other)
        )
        return len(first & second) / max(1, len(first))

    def compare(self, row: Row) -> None:
        """Measure a row, as far as it is not measured yet.

        Args:
            row: The row.
        """
        entries = {name: self.results.entry(row, name) for name in self.chosen(row)}
        for entry in entries.values():
            if entry["status"].startswith("failed: "):
                entry["status"] = "ok"  # and is tried again

        def due(name: str, turn: int) -> bool:
            entry = entries[name]
            spent = sum(done["process"] for done in entry["runs"])
            most = self.arguments.seconds
            if name not in REPEATED:
                most = 0 if row.tokenizer in peers.TOKENIZERS[1:] else self.arguments.once
            ended = turn > 0 and spent > most
            return entry["status"] == "ok" and len(entry["runs"]) <= turn and not ended

        for turn in range(min(self.arguments.runs, row.most_runs)):
            order = [name for name in entries if due(name, turn)]
            if not order:
                continue
            if turn == 0:
                print(f"{row.task} {row.corpus} {row.tokenizer or ''}", flush=True)
            for name in order if turn % 2 == 0 else reversed(order):
                self.measure(row, name, entries[name])
                self.results.save()
            if turn == 0:
                self.judge(row, entries)
                self.results.save()


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of corpora, environments and tokenizers")
    parser.add_argument("--rows", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--corpora", nargs="+", metavar="NAME", help="only rows of these corpora")
    parser.add_argument("--set", choices=corpora.SETS, default="report", help="of the corpora")
    parser.add_argument("--tokenizers", nargs="+", metavar="NAME", help="only rows of these")
    parser.add_argument("--contestants", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=100, help="of a contestant in a row")
    parser.add_argument("--once", type=float, default=10, help="the same of slow peers")
    parser.add_argument("--stop", type=float, default=30, help="seconds of a run of slow peers")
    parser.add_argument("--limit", type=float, default=900, help="seconds of a run")
    parser.add_argument("--threads", type=int, default=2, help="of whole processes")
    parser.add_argument("--megabytes", type=float, default=60, help="of text to encode and decode")
    parser.add_argument("--largest", type=float, default=10_000, help="MB of the curves")
    parser.add_argument("--results", type=Path, help="file (default: by the commit)")
    parser.add_argument(
        "--python", action="append", default=[], metavar="NAME=PATH",
        help="interpreter that has a peer, instead of a new environment",
    )  # fmt: skip
    comparison = Comparison(arguments := parser.parse_args())
    rows = [row for group in arguments.rows for row in rows_of(group, arguments.largest)]
    rows = [
        row
        for row in rows
        if (arguments.corpora is None or row.corpus in arguments.corpora)
        and (arguments.tokenizers is None or row.tokenizer in (None, *arguments.tokenizers))
    ]
    comparison.prepare(rows)
    for row in rows:
        comparison.compare(row)


if __name__ == "__main__":
    main()

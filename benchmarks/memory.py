"""Measure the memory of each process: the rows of the table in docs/architecture.md. Linux only.

    python benchmarks/memory.py
    python benchmarks/memory.py --row learner

Each row runs in a process of its own, on generated text whose words hardly repeat, the worst case
for every table. It prints the peak of resident memory beyond the memory of the process before, the
claim of the table for the same size, and their quotient. If the quotient is above 1, the claim is
wrong. Ends with 1 if a claim is wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bpe_beam import Tokenizer, _native
from bpe_beam.corpus.new_files import Watched
from bpe_beam.corpus.plan import InputFile, Plan
from bpe_beam.corpus.read_settings import ReadSettings
from bpe_beam.corpus.split_planning import plan_of_files
from bpe_beam.counts.round_files import PackedCounts, PairCounts
from bpe_beam.counts.word_table import PARTITIONS, WordCounter, WordRules
from bpe_beam.evaluation.metrics import Tally
from bpe_beam.evaluation.report import report_of
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.folders.receipts import TaskFolder
from bpe_beam.jobs import tokenize
from bpe_beam.jobs.dry_run.costs import FILE_BYTES, PART_WORD_BYTES, SPLIT_BYTES
from bpe_beam.progress import Progress
from bpe_beam.settings.common import InputSettings, RunSettings
from bpe_beam.settings.tokenize import ArrangementSettings, TokenizeSettings
from bpe_beam.shards.formats.megatron import MegatronStream, MegatronWriter
from bpe_beam.shards.shard_rows import Arrangement
from bpe_beam.storage import Storage
from bpe_beam.storage.json_file import to_struct
from bpe_beam.training.learn import learn
from bpe_beam.training.merges.words import Size, Words, memory_needed
from bpe_beam.training.recipe import BpeRecipe, UnigramRecipe
from bpe_beam.workers import count_split as counting
from bpe_beam.workers.arrange.block_files import BlockFileWriter
from bpe_beam.workers.arrange.regroup import regroup_blocks
from bpe_beam.workers.arrange.task import ArrangeTask, PartPlan, ShardGroups
from bpe_beam.workers.document_encoding import Encoding
from bpe_beam.workers.rounds import task as round_task
from bpe_beam.workers.split_reader import SplitReading
from bpe_beam.workers.split_task import split_tasks, task_name
from bpe_beam.workers.stream import watcher as watching
from bpe_beam.workers.stream.watcher import Stream, Watcher

MB = 1_000_000
STORAGE = Storage()
RANDOM = np.random.default_rng(1)

# What the table says, where no constant of the package does.
SPLIT_SOURCE_BYTES = 120
TALLY_BYTES = 16
EVALUATED_TOKEN_BYTES = 1000
WATCHED_FILE_BYTES = 900
WRITTEN_DOCUMENT_BYTES = 250
BLOCKS = 24 * MB
"""Readers' batches, blocks of a file and the allocator's own: what is fixed."""


class Found(NamedTuple):
    """The measured and the claimed memory of a row in bytes."""

    measured: int
    claimed: int


def memory(name: str) -> int:
    """Return a line of this process's status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def peak(work: Callable[[], object]) -> int:
    """Return the peak of resident memory while `work` runs, beyond that before."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = memory("VmRSS")
    kept = work()
    taken = memory("VmHWM") - before
    del kept
    return taken


def random_words(words: int, length: int = 12) -> str:
    """Return text of words that hardly repeat."""
    letters = RANDOM.integers(ord("a"), ord("z") + 1, (words, length + 1), dtype=np.uint8)
    letters[:, 0] = ord(" ")
    return letters.tobytes().decode()


def a_tokenizer() -> Tokenizer:
    """Return a tokenizer with some thousand merges."""
    table = WordCounter()
    table.add_texts(pa.array([random_words(20_000)]))
    words = words_of(table)
    learned = learn(words, BpeRecipe(4000))
    return Tokenizer.from_learned(learned.vocab, learned.merges, [])


def words_of(table: WordCounter) -> Words:
    """Return a table's words as a trainer reads them."""
    from bpe_beam.training.merges.words import gather_words

    return gather_words((block for _, block in table.blocks(1)), in_order_of_place=False)


def counted(folder: Path, text: str) -> tuple[counting.CountTask, str]:
    """Return a counting task with one split: a file of one record."""
    data = json.dumps({"text": text}).encode()
    (folder / "in.jsonl").write_bytes(data)
    for name in ("work", "rejects"):
        (folder / "run" / name).mkdir(parents=True)
    file = InputFile("in.jsonl", len(data), "jsonl", "none")
    plan = plan_of_files(str(folder), (file,), document_separator="\n", range_bytes=1 << 30)
    rules = WordRules(pretokenizer="whitespace_split")
    task = counting.CountTask(
        folder=TaskFolder(STORAGE, str(folder / "run"), ""),
        reading=ReadSettings(),
        rules=rules,
    )
    return task, split_tasks(plan)[0]


# ---- a function a row ----


def driver(folder: Path) -> Found:
    """Measure the plan and the receipts of a count job of many splits and sources."""
    files, splits, sources = 50_000, 500, 200
    sources_info = {
        f"source {i}": {"documents": i, "text_bytes": i, "words": i} for i in range(sources)
    }

    def receipt(plan: Plan, split: int) -> Mapping[str, Any]:
        return {
            **{"documents": 7, "text_bytes": 7, "words": 7, "rejects": {}},
            "sources": json.dumps(sources_info),
            "blocks": [[p, p * 1_000_000, 999_999] for p in range(PARTITIONS)],
            **msgspec.to_builtins(SplitReading.of(plan, plan.splits[split], ())),
        }

    def work() -> object:
        names = (f"folder-{i % 100:03}/part-{i:08}.jsonl" for i in range(files))
        made = tuple(
            InputFile(name, 1_000_000, "jsonl", "none", f"etag={hash(name):032x}") for name in names
        )
        size = -(-files // splits) * 1_000_000
        plan = plan_of_files("s3://b", made, document_separator="\n", range_bytes=size)
        texts = (json.dumps(receipt(plan, i)) for i in range(len(plan.splits)))
        stats = [json.loads(text) for text in texts]
        return plan, stats, [to_struct(each, counting.CountStats, "stats") for each in stats]

    claimed = FILE_BYTES * files + splits * (SPLIT_BYTES + SPLIT_SOURCE_BYTES * sources)
    return Found(peak(work), claimed)


def count_worker(folder: Path) -> Found:
    """Measure one record of 60 MB, nearly all of its words different."""
    task, split = counted(folder, random_words(4_600_000))
    record = (folder / "in.jsonl").stat().st_size
    return Found(
        peak(lambda: counting.count_split(task, split)),
        3 * record + 2 * counting.TABLE_BYTES + BLOCKS,
    )


def part_writer(folder: Path) -> Found:
    """Measure writing all words as if they were of one partition."""
    words = 1_500_000
    task, split = counted(folder, random_words(words))
    places = [(0, place) for _, place in counting.count_split(task, split).outputs]
    return Found(
        peak(lambda: counting.write_parts(task, (0, places))), PART_WORD_BYTES * words + BLOCKS
    )


def evaluation(folder: Path) -> Found:
    """Measure the report of a tokenizer on many sources, each of which has all tokens."""
    entries, sources, sizes = 30_000, 40, (10_000, 20_000)
    table = WordCounter()
    table.add_texts(pa.array([random_words(60_000)]))
    learned = learn(words_of(table), BpeRecipe(entries))
    tokenizer = Tokenizer.from_learned(learned.vocab, learned.merges, [])

    def work() -> object:
        def tallies() -> Iterator[tuple[str | None, Tally]]:
            for number in range(sources):
                tally = Tally.empty(entries)
                tally.tokens += RANDOM.integers(2**40, 2**41, entries)
                tally.whole += 1
                yield f"source {number}", tally

        return report_of("", Vocabulary(tokenizer), tallies(), sizes, exact=True)

    tallies = 2 * TALLY_BYTES * entries * (1 + len(sizes))
    return Found(peak(work), tallies + EVALUATED_TOKEN_BYTES * entries + BLOCKS)


def learner(folder: Path) -> Found:
    """Measure training on random bytes until pairs occur twice: nearly all are listed."""
    words, length, entries = 400_000, 16, 200_000
    data = RANDOM.integers(0, 256, words * length, dtype=np.uint8)
    offsets = np.arange(0, len(data) + 1, length, dtype=np.int64)
    learned_words, recipe = Words(data, offsets, np.ones(words, np.int64)), BpeRecipe(entries)
    return Found(
        peak(lambda: learn(learned_words, recipe)),
        memory_needed(len(data), words, recipe),
    )


def piece_learner(folder: Path) -> Found:
    """Measure the training of pieces on random letters, nearly all of whose substrings differ."""
    words, length = 1_000_000, 12
    data = RANDOM.integers(97, 123, words * length, dtype=np.uint8)
    offsets = np.arange(0, len(data) + 1, length, dtype=np.int64)
    learned_words = Words(data, offsets, np.ones(words, np.int64))
    recipe = UnigramRecipe(60_000, seed_size=100_000)
    taken = peak(lambda: learn(learned_words, recipe, threads=2))
    held = data.nbytes + offsets.nbytes + words * 8
    return Found(taken + held, memory_needed(len(data), words, recipe))


def rounds_driver(folder: Path) -> Found:
    """Measure segments of tokens that occur next to any other token, as in Chinese."""
    segments, length, known = 400_000, 6, 24_000
    symbols = RANDOM.integers(0, known, segments * length, dtype=np.uint32)
    offsets = np.arange(0, len(symbols) + 1, length, dtype=np.int64)
    counts = np.ones(segments, np.int64)
    tokens = [f"{i:05}".encode() for i in range(known)]

    def work() -> object:
        made = _native.BpeLearner(
            symbols, offsets, counts, tokens, known + 8000, 1, "lowest_id", stop_at_known=True
        )
        while len(made.learn(500)[0]):
            pass
        return made

    held = symbols.nbytes + offsets.nbytes + counts.nbytes
    return Found(peak(work) + held, Size(segments, len(symbols), len(symbols)).memory)


def packed(words: int, length: int) -> tuple[memoryview, NDArray[np.int64], NDArray[np.int64]]:
    """Return packed words, each symbol a byte."""
    data = RANDOM.integers(0, 128, words * length, dtype=np.uint8)
    offsets = np.arange(0, len(data) + 1, length, dtype=np.int64)
    return memoryview(data), offsets, np.ones(words, np.int64)


def round_worker(folder: Path) -> Found:
    """Measure a table of segments that grows to its limit and is written out."""

    def work() -> object:
        table = PackedCounts()
        while table.memory_bytes <= round_task.TABLE_BYTES:
            table.add(packed(65_536, 20))
        for _, block in table.blocks(64):
            block.serialize()
        return table

    return Found(peak(work), 2 * round_task.TABLE_BYTES + BLOCKS)


def round_sums(folder: Path) -> Found:
    """Measure the pairs of a shard, as many as one full table of a worker has."""

    def work() -> object:
        table = PairCounts()
        while table.memory_bytes <= round_task.TABLE_BYTES:
            data = RANDOM.integers(0, 30_000, 4 * 65_536, dtype=np.uint32)
            words = _native.pack_symbols(data, np.arange(0, len(data) + 1, 4, dtype=np.int64))
            table.add_words((*words, np.ones(65_536, np.int64)))
        table.frequent(1, round_task.FREQUENT_PAIRS)
        table.best(round_task.CANDIDATES, None)
        return table

    return Found(peak(work), 2 * round_task.TABLE_BYTES + BLOCKS)


def hot_pairs(folder: Path) -> Found:
    """Measure as many frequent pairs as a round may have."""
    lefts, rights = (
        RANDOM.integers(0, 30_000, round_task.FREQUENT_PAIRS, dtype=np.uint32) for _ in range(2)
    )
    held = lefts.nbytes + rights.nbytes
    return Found(
        peak(lambda: _native.FrequentPairs(lefts, rights)) + held,
        51 * round_task.FREQUENT_PAIRS + BLOCKS,
    )


def tokenize_worker(folder: Path) -> Found:
    """Measure encoding batches of 4 MB, without the tokenizer, which a process has once."""
    encoding = Encoding.of(a_tokenizer())
    batches = [pa.array([random_words(80) for _ in range(4_000)]) for _ in range(4)]
    ids = 0

    def work() -> None:
        nonlocal ids
        for batch in batches:
            ids = max(ids, len(encoding.encode(batch).values))

    taken = peak(work)
    return Found(taken, 2 * 4 * MB + 2 * 4 * ids + 64 * MB)


def freed_ids(folder: Path) -> Found:
    """Measure what stays of the ids of batches of many sizes, each freed before the next."""
    made = a_tokenizer()
    made.encode("a")
    gc.collect()
    before = memory("VmRSS")
    for documents in (4_000, 16_000, 8_000, 64_000, 1_000, 32_000) * 2:
        made.encode_batch(pa.array([random_words(80)] * documents), output="arrow")
    gc.collect()
    return Found(memory("VmRSS") - before, (128 + 64) * MB + BLOCKS)


def arranging_worker(folder: Path) -> Found:
    """Measure two threads that arrange documents, and then ten times as many.

    Those may take no more, but for the chance that two threads peak at once. Only the lengths of
    documents matter here, so a few thousand documents come again and again.
    """
    shard_tokens, length = 4 * MB, 2048
    a_tokenizer().save(str(folder / "tokenizer.json"))
    texts = [random_words(int(n)) for n in RANDOM.integers(10, 400, 4_000)]
    small, large = (
        _arranging_peak(folder, texts * times, shard_tokens, length) for times in (3, 30)
    )
    claimed = 2 * (max(110 * MB, 10 * shard_tokens) + 200 * length) + BLOCKS
    return Found(large, min(claimed, small * 6 // 5))


def regrouping_worker(folder: Path) -> Found:
    """Measure a task that regroups the blocks of a hundred files: 100 MB of ids in 500,000 slices.

    Each file has one block, which is in memory at once; a store has up to 32 MB of them read ahead.
    """
    files, slices, shards = 100, 5_000, 200
    (folder / "work").mkdir()
    needed: dict[str, Any] = {
        "folder": TaskFolder(STORAGE, str(folder), ""),
        "shards": files,
        "arrangement": Arrangement(),
        "shard_format": "megatron",
        "vocab_size": 50_000,
        "parts": (PartPlan.even("shard", files * slices, shards),),
        "groups": ShardGroups((0, shards), 1),
    }
    task = ArrangeTask(**(dict.fromkeys(ArrangeTask.__annotations__) | needed))
    positions = RANDOM.permutation(files * slices)
    for number, chosen in enumerate(np.split(positions, files)):
        columns = [
            chosen,
            np.zeros(slices, np.int64),
            pa.array([bytes(200)] * slices, "large_binary"),
        ]
        rows = pa.RecordBatch.from_arrays([*map(pa.array, columns)], schema=task.slices_schema)
        url = task.folder.path(f"work/{task_name('scatter', number, files)}.bin")
        with STORAGE.create(url) as stored, BlockFileWriter(stored, rows.schema, 1) as file:
            file.add(rows, np.zeros(slices, np.int64))
            file.finish()
    urls = sorted(str(path) for path in (folder / "work").iterdir())
    return Found(peak(lambda: regroup_blocks(task, urls, [], "0")), 100 * MB)


def _arranging_peak(folder: Path, texts: list[str], shard_tokens: int, length: int) -> int:
    """Return the peak of a process of its own that tokenizes texts and arranges them."""
    corpus, output = folder / f"{len(texts)}.jsonl", folder / f"tokens-{len(texts)}"
    with corpus.open("w") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    settings = TokenizeSettings(
        tokenizer=str(folder / "tokenizer.json"),
        output=str(output),
        input=InputSettings(inputs=[str(corpus)]),
        run=RunSettings(workers=2),
        arranging=ArrangementSettings(
            sequence_length=length, packing="best_fit", shuffle_seed=1, shard_tokens=shard_tokens
        ),
    )
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_tokenizing_peak, settings).result()


def _tokenizing_peak(settings: TokenizeSettings) -> int:
    return peak(lambda: tokenize.run(settings, Progress("none")))


def tokenizer(folder: Path) -> Found:
    """Measure a tokenizer of 100,000 entries against its file's bytes."""
    table = WordCounter()
    table.add_texts(pa.array([random_words(60_000)]))
    learned = learn(words_of(table), BpeRecipe(100_000))
    made = Tokenizer.from_learned(learned.vocab, learned.merges, [])
    text = made.to_json()
    return Found(peak(lambda: Tokenizer.from_json(text).encode("a")), 40 * len(text))


def shard_writer(folder: Path) -> Found:
    """Measure writing twenty million documents of one token."""
    batch = np.ones(1_000_000, np.uint32)
    offsets = np.arange(len(batch) + 1, dtype=np.int64)

    def work() -> None:
        with MegatronWriter(STORAGE, str(folder), "shard", 50_000) as writer:
            for _ in range(20):
                writer.write_documents(batch, offsets)

    return Found(peak(work), 2 * BLOCKS)


def verifier(folder: Path) -> Found:
    """Measure reading back a shard of ten million documents."""
    batch = np.ones(1_000_000, np.uint32)
    with MegatronWriter(STORAGE, str(folder), "shard", 50_000) as writer:
        for _ in range(10):
            writer.write_documents(batch, np.arange(len(batch) + 1, dtype=np.int64))

    def work() -> None:
        with MegatronStream.open(STORAGE, str(folder), "shard") as reader:
            for start in range(0, len(reader), 1 << 18):
                reader.tokens(start, min(start + (1 << 18), len(reader)))

    return Found(peak(work), 2 * BLOCKS)


def watcher(folder: Path) -> Found:
    """Measure three looks after a restart at files that were all read before."""
    files = 20_000
    inputs = folder / "in"
    for i in range(files):
        path = inputs / f"{i % 50:02}" / f"part-of-some-day-{i:08}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b'{"text": ""}\n')
    (folder / "out").mkdir()
    made = a_tokenizer()
    stream = Stream(
        storage=STORAGE, output=str(folder / "out"), fingerprint="f" * 64,
        watched=Watched.of(STORAGE, [f"{inputs}/**/*.jsonl"]), reading=ReadSettings(),
        encoding=Encoding.of(made), settings={}, range_bytes=None, max_rejects="0", max_lost="0",
        poll_seconds=1, window_seconds=0, until_idle_seconds=None,
    )  # fmt: skip
    Watcher(replace(stream, watched=replace(stream.watched, patterns=()))).look(0)  # imports

    # While a window is made or read, the statistics of all its files are in memory. A small limit
    # keeps that below the memory that remains between windows.
    watching.MAX_WINDOW_FILES = 1000
    first = Watcher(stream)
    for now in range(2 + files // 1000):
        first.look(now)
    del first

    def work() -> object:
        looking = Watcher(stream)  # as after a restart
        for now in range(3):
            looking.look(now)
        return looking

    return Found(peak(work), WATCHED_FILE_BYTES * files + 4 * MB)


def tokenize_transform(folder: Path) -> Found:
    """Measure single documents that are gathered and encoded together."""
    from apache_beam.transforms.window import GlobalWindow
    from apache_beam.utils.timestamp import Timestamp

    from bpe_beam.transforms.tokenize import _Encode

    do_fn = _Encode(Encoding.of(a_tokenizer()), STORAGE, "text", False)
    texts = [random_words(70) for _ in range(20_000)]

    def work() -> None:
        do_fn.start_bundle()
        for text in texts:
            for _ in do_fn.process(text, Timestamp(0), GlobalWindow(), None):
                pass
        for _ in do_fn.finish_bundle():
            pass

    return Found(peak(work), 16 * MB + BLOCKS)


def write_tokens(folder: Path) -> Found:
    """Measure writing documents of a few tokens to one shard."""
    from bpe_beam.shards.numbering import shard_name
    from bpe_beam.transforms.document_chunks import digest_of, write_shard
    from bpe_beam.transforms.tokens_folder import TokensFolder

    documents = 300_000
    made = a_tokenizer()

    def chunks() -> Iterator[tuple[bytes, int, bytes]]:
        for i in range(documents):
            ids = (i % 4000).to_bytes(4, "little") + (i // 4000).to_bytes(4, "little")
            yield digest_of(ids), 0, ids
        yield b"", 0, shard_name(0, 1).encode()

    target = TokensFolder(STORAGE, str(folder), 1, made.to_json(), "megatron", "0")
    target.claim([f"{shard_name(0, 1)}.bin"])
    return Found(
        peak(lambda: list(write_shard((0, chunks()), target))),
        WRITTEN_DOCUMENT_BYTES * documents + BLOCKS,
    )


def encode_iterable(folder: Path) -> Found:
    """Measure encoding a text of 20 MB in chunks of 64 KB."""
    made = a_tokenizer()
    chunk = random_words(5_000)

    def work() -> int:
        return sum(1 for _ in made.encode_iterable(chunk for _ in range(300)))

    return Found(peak(work), 64 * MB + 64 * len(chunk))


ROWS: dict[str, Callable[[Path], Found]] = {
    row.__name__: row
    for row in (
        driver, count_worker, part_writer, evaluation, learner, piece_learner, rounds_driver,
        round_worker,
        round_sums, hot_pairs, tokenize_worker, tokenizer, freed_ids, arranging_worker,
        regrouping_worker,
        shard_writer, verifier, watcher, tokenize_transform, write_tokens, encode_iterable,
    )
}  # fmt: skip


def main() -> int:
    """Run the rows, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--row", choices=ROWS)
    chosen = parser.parse_args().row
    if chosen is None:
        print(f"{'row':20} {'measured':>12} {'claimed':>12} {'quotient':>9}", flush=True)
        command = [sys.executable, __file__, "--row"]
        return max(subprocess.run([*command, row], check=False).returncode for row in ROWS)
    with tempfile.TemporaryDirectory() as folder:
        found = ROWS[chosen](Path(folder))
    quotient = found.measured / found.claimed
    print(
        f"{chosen:20} {found.measured / MB:9,.1f} MB {found.claimed / MB:9,.1f} MB {quotient:9.2f}",
        flush=True,
    )
    return int(quotient > 1)


if __name__ == "__main__":
    sys.exit(main())

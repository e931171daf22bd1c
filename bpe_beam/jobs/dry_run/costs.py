"""The model of costs: processor seconds, bytes and requests of each stage on an object store.

Each is a sum of few terms, linear in files, splits, bytes, and blocks of words or documents. The
seconds of text depend on the machine, the corpus and the tokenizer: a dry run measures them.
The constants here do not: they are of a machine with pace 1, and a dry run measures the pace of its
own. `benchmarks/scale.py` measures them, and docs/scale.md compares the model with jobs that were
not used to choose them.
"""

from __future__ import annotations

import math
from math import ceil

from msgspec import Struct

from bpe_beam.counts.word_table import PARTITIONS
from bpe_beam.storage.remote_file import BLOCK, FIRST_BLOCK
from bpe_beam.storage.uploading import PART
from bpe_beam.workers.arrange.block_files import READ_AHEAD, READ_AHEAD_SHARE
from bpe_beam.workers.arrange.planning import groups_of
from bpe_beam.workers.count_split import AHEAD_BYTES, REQUESTS_AHEAD, TABLE_BYTES

FILE_BYTES, SPLIT_BYTES = 700, 25_000
"""The memory of a driver for each file of the plan, and for each split with its receipt."""

PART_WORD_BYTES = 150  # the memory of a word in the task that writes its part

DRIVER_BYTES, WORKER_BYTES = 250 * 10**6, 300 * 10**6
"""The memory of a driver and of a worker's process without tasks: Python, and libraries."""

SLICE_TOKEN_BYTES = 1
"""The memory of a token in the task that writes a new shard, besides its id. Documents of few
tokens need more."""

WORD_CACHE_BYTES = 64 << 20  # the memory of the word cache of an encoding thread

REQUEST_SECONDS, BYTE_SECONDS = 4.8e-3, 1.8e-9
"""The processor time of a store's client for each request, and for each byte."""

START_SECONDS = 2.5  # the processor time until a process has begun to work

PIPELINE_SECONDS, WORKER_SECONDS = 12.7, 13.2
"""The processor time of a runner for each pipeline: of the driver and the manager, and of each
worker to start its processes. Measured with Flink on one and two hosts; most of it is Java's."""

FILE_SECONDS, SPLIT_SECONDS = 0.27e-3, 1.0e-3
"""The processor time of the driver for each file of the plan and each split, without requests."""

COUNT_TEXT_SECONDS, COUNT_BLOCK_SECONDS = 1.9e-9, 41e-9
COUNT_MISS_SECONDS, CACHED_BLOCK_BYTES = 2.4e-9, 3 * 10**6
"""The processor time of counting, for each byte of text and of the blocks of words, and again for
each byte of text when the blocks of a split double beyond some bytes, since its table of words is
not in a core's cache then. A dry run measures their sum. Large splits have fewer unique words in
total, and so fewer blocks, than the sample."""

REGROUP_SECONDS = 8e-9  # of regrouping blocks, for each byte of ids, without requests

PART_BLOCK_SECONDS = 17e-9  # of writing parts, for each byte of the blocks of words

TOKENIZE_TEXT_SECONDS, TOKENIZE_NEW_SECONDS = 10.5e-9, 36e-9
"""The processor time of tokenizing, for each byte of text; the second for words that a thread's
cache does not have, when it has seen 1 MB. Their share falls with the power 0.4 of the text."""

PASSES, PASS_BYTE_SECONDS = 35, 70e-9
"""A number of passes of Unigram, and the processor time of each byte of the words in one. Measured
with 100 million words and 32,000 entries."""

ROUND_SECONDS, ROUND_BYTE_SECONDS = 0.4, 195e-9
"""The processor time of a merge round: in the driver, and for each byte of the words in it."""

ROUND_BLOCKS = 0.15  # the bytes of pairs and segments of a round, for each byte of all words
_MAX_PAIR_PARTITIONS, _ROUND_TASK_BYTES = 1024, 256 << 20

REFERENCE_BYTES = 200  # of a shuffled reference to blocks of words

DRIVER_REQUESTS = 32  # the requests that a driver makes at once

TOKEN_COUNT_BYTES = 6.6  # of each token of the vocabulary, for each split

# The requests beyond the ranges of large files: (reads, writes) of a task, and the driver's for it.
_COUNT_SPLIT, _COUNT_SPLIT_DRIVER = (2, 2), (2, 1)
_PART, _PART_DRIVER = (2, 2), (4, 3)
_TOKENIZE_SPLIT, _TOKENIZE_SPLIT_DRIVER = (4, 4), (9, 5)
_MEASURE, _SCATTER, _ARRANGE_DRIVER = (6, 2), (6, 2), (4, 2)
_NEW_SHARD, _NEW_SHARD_DRIVER = (4, 3), (6, 6)
_REGROUP, _REGROUP_DRIVER = (4, 2), (4, 2)
_ROUND, _WORD_BATCH = (25, 8), (11, 10)
_BLOCK = 3  # of a block of a block file: its size, where it is, and what is in it


class Corpus(Struct, frozen=True):
    """The sizes of a corpus and of its plan."""

    files: int
    splits: int
    stored_bytes: int
    text_bytes: int


class Stage(Struct, frozen=True, kw_only=True):
    """The cost of a stage: of all of its tasks together, or of the driver if it has no tasks.

    `memory_bytes` is the maximum of one task, or of the driver.
    """

    processor_seconds: float = 0.0  # on this machine, as a sample shows
    reference_seconds: float = 0.0  # more of them, at pace 1; without requests
    tasks: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    shuffled_bytes: int = 0  # through the runner
    reads: int = 0  # requests that read or list
    writes: int = 0  # requests that write, copy or remove
    at_once: int = 1  # the requests of a task that wait at the same time
    memory_bytes: int = 0
    pipelines: int = 0  # of its own, one after another; 0: it is in one with its neighbours

    def all_seconds(self, pace: float) -> float:
        """Return all processor seconds at a pace, with the store's client."""
        moved = self.read_bytes + self.written_bytes
        client = REQUEST_SECONDS * (self.reads + self.writes) + BYTE_SECONDS * moved
        return self.processor_seconds + pace * (self.reference_seconds + client)


def ranges_of(size: int) -> tuple[int, int]:
    """Return the requests and the bytes by which so many bytes of a remote file are read."""
    requests, read, block = 0, 0, FIRST_BLOCK
    while read < size and block < BLOCK:
        requests, read, block = requests + 1, read + block, 4 * block
    blocks = ceil(max(0, size - read) / BLOCK)
    return requests + blocks, read + blocks * BLOCK


def parts_of(size: int) -> int:
    """Return the requests that write so many bytes: one, or the parts of an upload and two more."""
    return 1 if size <= PART else 2 + ceil(size / PART)


def runner_seconds(workers: int) -> float:
    """Return the processor seconds of a runner with so many workers for a pipeline, by itself."""
    return PIPELINE_SECONDS + WORKER_SECONDS * workers


def driver_stage(corpus: Corpus, split: tuple[int, int], more: tuple[int, int] = (0, 0)) -> Stage:
    """Return the driver's part: the plan, receipts, and final names.

    Args:
        corpus: The corpus.
        split: The requests for each split that read, and that write.
        more: Other requests.
    """
    return Stage(
        reference_seconds=START_SECONDS
        + FILE_SECONDS * corpus.files
        + SPLIT_SECONDS * corpus.splits,
        reads=corpus.files + ceil(corpus.files / 1000) + split[0] * corpus.splits + more[0],
        writes=split[1] * corpus.splits + more[1],
        memory_bytes=DRIVER_BYTES + FILE_BYTES * corpus.files + SPLIT_BYTES * corpus.splits,
    )


def _read_text(corpus: Corpus) -> tuple[int, int]:
    """Return the requests and the bytes of reading all splits.

    A reader reads beyond the end of a slice, to the end of its last record.
    """
    slices = max(corpus.splits, corpus.files)
    requests, read = ranges_of(corpus.stored_bytes // slices + FIRST_BLOCK)
    past_ends = max(0, corpus.splits - corpus.files) * (read - corpus.stored_bytes // slices)
    return slices * (1 + requests), corpus.stored_bytes + past_ends


def counting_seconds(text: float, blocks: float, splits: int) -> float:
    """Return the usual processor seconds of counting splits; more than 0."""
    doubled = math.log2(max(1.0, blocks / splits / CACHED_BLOCK_BYTES))
    text_seconds = COUNT_TEXT_SECONDS + COUNT_MISS_SECONDS * doubled
    return text_seconds * max(1.0, text) + COUNT_BLOCK_SECONDS * blocks


def count_stages(
    corpus: Corpus, seconds: tuple[float, float], blocks: int, unique: int, counts_bytes: int
) -> dict[str, Stage]:
    """Return the stages of `count`.

    Args:
        corpus: Its corpus.
        seconds: The processor seconds of counting splits, and of writing parts.
        blocks: The bytes of the blocks of words between both.
        unique: The unique words.
        counts_bytes: The bytes of the parts.
    """
    reads, read = _read_text(corpus)
    pairs = corpus.splits * PARTITIONS
    each, moved = ranges_of(max(1, blocks // pairs))
    return {
        "driver": driver_stage(
            corpus,
            _COUNT_SPLIT_DRIVER,
            (_PART_DRIVER[0] * PARTITIONS, _PART_DRIVER[1] * PARTITIONS),
        ),
        "count splits": Stage(
            processor_seconds=seconds[0],
            tasks=corpus.splits,
            read_bytes=read,
            written_bytes=blocks,
            shuffled_bytes=REFERENCE_BYTES * pairs,
            reads=reads + _COUNT_SPLIT[0] * corpus.splits,
            writes=(_COUNT_SPLIT[1] + parts_of(blocks // corpus.splits) - 1) * corpus.splits,
            memory_bytes=min(2 * TABLE_BYTES, 10 * blocks // corpus.splits),
        ),
        "write parts": Stage(
            processor_seconds=seconds[1],
            tasks=PARTITIONS,
            read_bytes=min(pairs * moved, PARTITIONS * blocks),
            written_bytes=counts_bytes,
            reads=pairs * (1 + each) + _PART[0] * PARTITIONS,
            at_once=max(
                1, min(REQUESTS_AHEAD, corpus.splits, AHEAD_BYTES * pairs // max(1, blocks))
            ),
            writes=(_PART[1] + parts_of(counts_bytes // PARTITIONS) - 1) * PARTITIONS,
            memory_bytes=PART_WORD_BYTES * unique // PARTITIONS,
        ),
    }


def training_stages(
    seconds: float, counts_bytes: int, storage_bytes: int, memory: int
) -> dict[str, Stage]:
    """Return the stage of a training in the driver, without the start of the process."""
    requests, read = ranges_of(counts_bytes // PARTITIONS)
    return {
        "learn": Stage(
            processor_seconds=seconds,
            read_bytes=min(counts_bytes, PARTITIONS * read),
            written_bytes=storage_bytes,
            reads=PARTITIONS * (1 + requests) + 25,
            writes=8,
            memory_bytes=memory,
        )
    }


def usual_rounds(vocab_size: int, word_bytes: int, driver_memory: int) -> int:
    """Return a usual number of merge rounds of byte-level BPE.

    From round to round the minimum count of a merge falls, from the best pair's to the last
    merge's, by greater factors the more memory the driver has for segments, up to a limit.
    """
    fall = 8.7 + 1.9 * math.log(max(1, vocab_size) / 8000)
    a_round = 0.95 - 0.185 * math.log(max(1, driver_memory) / max(1, word_bytes))
    return max(1, round(fall * max(0.53, a_round)))


def rounds_stages(word_bytes: int, rounds: int, memory: int) -> dict[str, Stage]:
    """Return the stages of a training in merge rounds.

    The time in which the driver learns from segments is not predicted.
    """
    batches = _word_batches(max(1, word_bytes / PARTITIONS))
    partitions = min(batches, _MAX_PAIR_PARTITIONS)
    words = round(
        (2 + 0.27 * rounds) * word_bytes
    )  # of all rounds: they have fewer symbols in each
    blocks = 2 * rounds * batches * partitions  # of pairs, and of segments
    written = round(ROUND_BLOCKS * rounds * word_bytes)
    of_words = ranges_of(words // (rounds * batches))[0]
    of_block, moved = ranges_of(max(1, written // blocks))
    # A range ends with the file, if it does not end before.
    moved = min(moved, written // (2 * rounds * batches)) // 2
    return {
        "merge rounds": Stage(
            reference_seconds=ROUND_BYTE_SECONDS * words,
            tasks=batches,
            read_bytes=2 * words + blocks * moved,
            written_bytes=words + written,
            reads=rounds * (_ROUND[0] + batches * (_WORD_BATCH[0] + 2 * (1 + of_words)))
            + blocks * (1 + of_block),
            writes=rounds * (_ROUND[1] + batches * _WORD_BATCH[1]),
            memory_bytes=_ROUND_TASK_BYTES,
            pipelines=rounds,
        ),
        "driver of rounds": Stage(
            reference_seconds=START_SECONDS + ROUND_SECONDS * rounds, memory_bytes=memory
        ),
    }


def passes_stages(word_bytes: int, memory: int) -> dict[str, Stage]:
    """Return the stages of a training in passes; each pass reads the segments of all words."""
    batches = _word_batches(max(1, word_bytes / PARTITIONS))
    requests, _ = ranges_of(word_bytes // batches)
    return {
        "passes": Stage(
            reference_seconds=PASSES * PASS_BYTE_SECONDS * word_bytes,
            tasks=batches,
            read_bytes=PASSES * word_bytes,
            written_bytes=word_bytes,
            reads=PASSES * batches * (_WORD_BATCH[0] + 1 + requests),
            writes=PASSES * batches * _WORD_BATCH[1],
            memory_bytes=_ROUND_TASK_BYTES,
            pipelines=PASSES,
        ),
        "driver of passes": Stage(reference_seconds=START_SECONDS, memory_bytes=memory),
    }


def _word_batches(part_bytes: float) -> int:
    """Return the number of word batches of so large parts, which are joined or cut."""
    from bpe_beam.jobs.train.commits import MAXIMUM_WORD_BYTES, MINIMUM_WORD_BYTES

    if part_bytes > MAXIMUM_WORD_BYTES:
        return PARTITIONS * ceil(part_bytes / MAXIMUM_WORD_BYTES)
    return ceil(PARTITIONS / max(1, MINIMUM_WORD_BYTES // part_bytes))


def tokenizing_seconds(text: float, threads: int) -> float:
    """Return the usual processor seconds of tokenizing by threads with a cache each; more than 0.

    A dry run measures a sample, where a thread has seen less text than in the whole job.
    """
    each = max(1.0, text) / threads
    new_words = TOKENIZE_NEW_SECONDS * math.pow(each / 1e6, -0.4)
    return threads * each * (TOKENIZE_TEXT_SECONDS + new_words)


def tokenize_stages(
    corpus: Corpus, seconds: float, shard_bytes: int, vocabulary: int
) -> dict[str, Stage]:
    """Return the stages of `tokenize` with documents in their order.

    Args:
        corpus: Its corpus.
        seconds: The processor seconds of tokenizing splits.
        shard_bytes: The bytes of all shards.
        vocabulary: The number of tokens.
    """
    reads, read = _read_text(corpus)
    counted = round(TOKEN_COUNT_BYTES * vocabulary)
    return {
        "tokenize splits": Stage(
            processor_seconds=seconds,
            tasks=corpus.splits,
            read_bytes=read,
            written_bytes=shard_bytes + counted * corpus.splits,
            reads=reads + _TOKENIZE_SPLIT[0] * corpus.splits,
            writes=(_TOKENIZE_SPLIT[1] - 1 + parts_of(shard_bytes // corpus.splits))
            * corpus.splits,
            memory_bytes=WORD_CACHE_BYTES,
        ),
        "driver": driver_stage(corpus, _TOKENIZE_SPLIT_DRIVER),
    }


def new_shard_memory(tokens: int, vocabulary: int) -> int:
    """Return the bytes of memory of the task that writes a new shard of so many tokens."""
    id_bytes = 2 if vocabulary <= 1 << 16 else 4
    return max(110 * 10**6, (SLICE_TOKEN_BYTES + id_bytes) * tokens)


def _blocks_at_once(files: int) -> int:
    """Return how many blocks of so many block files a task reads at once."""
    return max(1, min(READ_AHEAD, files // READ_AHEAD_SHARE))


def arrange_stages(
    output: str,
    corpus: Corpus,
    seconds: tuple[float, float, float],
    shard_bytes: int,
    new_shards: int,
    memory: int,
) -> dict[str, Stage]:
    """Return the stages after `tokenize_stages` that order documents, or make sequences.

    Args:
        output: The URL of the output.
        corpus: Its corpus.
        seconds: The processor seconds of measuring, of ordering, and of writing new shards.
        shard_bytes: The bytes of all shards; twice, of ordered documents too.
        new_shards: The number of new shards.
        memory: The bytes of a new shard in memory.
    """
    splits = corpus.splits
    shard_reads, shard_read = ranges_of(shard_bytes // splits)
    new_parts = parts_of(shard_bytes // new_shards)
    groups, regroup = groups_of(output, splits, [new_shards], shard_bytes), {}
    files, tasks = splits, 0  # the block files of each new shard, and the tasks that regroup blocks
    if groups is not None:
        files, tasks = groups.sets, groups.sets * groups.count
        regroup["regroup blocks"] = Stage(
            reference_seconds=REGROUP_SECONDS * shard_bytes,
            tasks=tasks,
            read_bytes=shard_bytes,
            written_bytes=shard_bytes,
            reads=_BLOCK * splits * groups.count + _REGROUP[0] * tasks,
            writes=(_REGROUP[1] - 1 + parts_of(shard_bytes // tasks)) * tasks,
            at_once=_blocks_at_once(splits // groups.sets),
            memory_bytes=130 * 10**6,
        )
    return {
        "measure": Stage(
            processor_seconds=seconds[0],
            tasks=splits,
            reads=_MEASURE[0] * splits,
            writes=_MEASURE[1] * splits,
        ),
        "plan shards": Stage(
            reference_seconds=SPLIT_SECONDS * (splits + tasks + new_shards),
            reads=_ARRANGE_DRIVER[0] * splits
            + _REGROUP_DRIVER[0] * tasks
            + _NEW_SHARD_DRIVER[0] * new_shards
            + 50,
            writes=_ARRANGE_DRIVER[1] * splits
            + _REGROUP_DRIVER[1] * tasks
            + _NEW_SHARD_DRIVER[1] * new_shards
            + 20,
        ),
        "order documents": Stage(
            processor_seconds=seconds[1],
            tasks=splits,
            read_bytes=min(splits * shard_read, shard_bytes),
            written_bytes=shard_bytes,
            reads=(_SCATTER[0] + shard_reads) * splits,
            writes=(_SCATTER[1] - 1 + parts_of(shard_bytes // splits)) * splits,
            memory_bytes=110 * 10**6,
        ),
        **regroup,
        "write new shards": Stage(
            processor_seconds=seconds[2],
            tasks=new_shards,
            read_bytes=shard_bytes,
            written_bytes=shard_bytes,
            reads=(_BLOCK * files + _NEW_SHARD[0]) * new_shards,
            writes=(_NEW_SHARD[1] - 1 + new_parts) * new_shards,
            at_once=_blocks_at_once(files),
            memory_bytes=memory,
        ),
    }

"""Learn subword tokenizers from corpora of any size, and turn them into token shards, on Beam.

Train, from texts, files or counts; and encode:

    import bpe_beam

    tokenizer = bpe_beam.train(texts, vocab_size=32000, special_tokens=["<|endoftext|>"])
    tokenizer.save("tokenizer.json")
    ids = tokenizer.encode("Hello, world")
    assert tokenizer.decode(ids) == "Hello, world"

Count once, train many:

    counts = bpe_beam.count("data/*.jsonl.gz", pretokenizer="llama3")
    tokenizers = [bpe_beam.train(counts, vocab_size=size) for size in (16000, 32000, 64000)]

Load what others published, and see what it does to a text:

    tokenizer = bpe_beam.Tokenizer.from_file("tokenizer.json")
    figures = bpe_beam.evaluate(tokenizer, texts)

Write token shards, and read them in a training loop:

    bpe_beam.tokenize("data/*.jsonl.gz", tokenizer=tokenizer, output="tokens")
    data = bpe_beam.shards.open("tokens")
    bpe_beam.mix(["tokens", "tokens-2"], output="mixed", mixture="mixture.yaml")

The names:

    train       texts, files or counts to a Tokenizer; help(bpe_beam.train) lists its options
    count       texts or files to WordCounts, in memory
    evaluate    figures of tokenizers on texts, files or counts
    tokenize    files to a folder of token shards
    mix         folders of token shards to one, with so many tokens of each source
    Tokenizer   text to ids and back; tokenizer files
    WordCounts  words, and how often they occur
    shards      tokens folders of any format, for training loops

`shards.open` returns a TokenDataset: batches, shuffles, parts of ranks, labels, positions to resume
from; help(bpe_beam.shards) lists them.

The Beam transforms, for pipelines of your own, are in bpe_beam.transforms, which imports Beam.

Wrong arguments raise a ValueError that names them. The command `bpe-beam` does the same for corpora
of any size, on one machine or on a cluster.
"""

# Public names are imported when they are first used: the command line needs none of them.

import importlib

TYPE_CHECKING = False  # the command line handles no signal while `typing` loads
if TYPE_CHECKING:
    from bpe_beam import shards
    from bpe_beam.api.evaluate import evaluate
    from bpe_beam.api.mix import mix
    from bpe_beam.api.tokenize import tokenize
    from bpe_beam.api.train import count, train
    from bpe_beam.counts.word_counts import WordCounts
    from bpe_beam.tokenizer.tokenizer import Tokenizer

__all__ = ["Tokenizer", "WordCounts", "count", "evaluate", "mix", "shards", "tokenize", "train"]

_MODULES = {
    "Tokenizer": "bpe_beam.tokenizer.tokenizer",
    "WordCounts": "bpe_beam.counts.word_counts",
    "count": "bpe_beam.api.train",
    "evaluate": "bpe_beam.api.evaluate",
    "mix": "bpe_beam.api.mix",
    "tokenize": "bpe_beam.api.tokenize",
    "train": "bpe_beam.api.train",
}


def __getattr__(name: str) -> object:
    """Return a public name of the package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the names of the package, also of what is not imported yet."""
    return sorted({*globals(), *__all__})

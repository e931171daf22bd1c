"""Compare Unigram encoding with SentencePiece's and with Hugging Face's tokenizers, on one thread.

    python benchmarks/unigram.py CORPUS.jsonl [MORE.jsonl ...] [--model FILE] [--runs 5]

A corpus is JSON Lines with a field `text`, such as files of benchmarks/corpora.py. Without --model
SentencePiece trains a model of --vocab-size pieces on the first 20 MB of each corpus, which takes
minutes for the largest vocabularies. bpe-beam and sentencepiece read the model; bpe-beam and
tokenizers read a tokenizer.json of its pieces and scores, in Hugging Face's components. The ids of
each pair must be equal.

Each run measures bpe-beam with a new cache, bpe-beam again, and the other library. The figures are
medians of MB per second of CPU time, and the ratios of bpe-beam to the other library.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from bpe_beam import Tokenizer

TRAINING_MEGABYTES = 20
SPACES = " {2,}"


def texts_of(path: Path, megabytes: float) -> list[str]:
    """Return the first texts of a corpus.

    Args:
        path: The corpus.
        megabytes: End with the text that reaches this size.
    """
    found, left = [], megabytes * 1e6
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["text"]
            found.append(text)
            left -= len(text.encode())
            if left <= 0:
                break
    return found


def trained(paths: list[Path], vocab_size: int) -> bytes:
    """Return a model that SentencePiece has trained.

    Args:
        paths: Corpora.
        vocab_size: Pieces of the model.
    """
    import sentencepiece

    def lines() -> Iterator[str]:
        for path in paths:
            for text in texts_of(path, TRAINING_MEGABYTES):
                yield from (line for line in text.splitlines() if line.strip() and "\0" not in line)

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines(), model_writer=model, vocab_size=vocab_size, minloglevel=2,
        model_type="unigram", num_threads=os.cpu_count(), max_sentence_length=1 << 16,
    )  # fmt: skip
    return model.getvalue()


def tokenizer_json(model: Path) -> str:
    """Return a model's pieces and scores in Hugging Face's components.

    Args:
        model: A `.model` file.
    """
    import sentencepiece
    from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers
    from tokenizers import Tokenizer as HuggingFace

    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    vocab = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(len(processor))]
    made = HuggingFace(models.Unigram(vocab, unk_id=processor.unk_id()))
    normalizer = Tokenizer.from_sentencepiece(str(model)).spec.normalizer
    charsmap = getattr(normalizer, "precompiled_charsmap", "")
    made.normalizer = normalizers.Sequence(
        [
            *([normalizers.Precompiled(base64.b64decode(charsmap))] if charsmap else []),
            normalizers.Strip(left=False, right=True),
            normalizers.Replace(Regex(SPACES), "\u2581"),
        ]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    return str(made.to_str())


def timed(encode: Callable[[Any], Any], texts: Any) -> tuple[float, Any]:
    """Return the seconds of CPU time that texts take, and their ids."""
    begun = time.process_time()
    result = encode(texts)
    return time.process_time() - begun, result


def compare(
    title: str,
    load: Callable[[], Tokenizer],
    other: Callable[[list[str]], list[list[int]]],
    texts: list[str],
    runs: int,
) -> None:
    """Measure one pair, and print its line.

    Args:
        title: Of the line.
        load: Makes bpe-beam's tokenizer, whose cache is empty.
        other: Encodes texts with the other library.
        texts: What is encoded.
        runs: How often.
    """
    strings = pa.array(texts, pa.large_string())
    seconds: dict[str, list[float]] = {"cold": [], "warm": [], "other": []}
    for turn in range(runs):
        ours = load()
        ours.encode("first")
        cold, ids = timed(partial(ours.encode_batch, output="arrow"), strings)
        warm, _ = timed(partial(ours.encode_batch, output="arrow"), strings)
        theirs, expected = timed(other, texts)
        if turn == 0 and ids.to_pylist() != expected:
            sys.exit(f"{title}: ids differ")
        for name, value in (("cold", cold), ("warm", warm), ("other", theirs)):
            seconds[name].append(value)
    size = sum(len(text.encode()) for text in texts) / 1e6
    cold, warm, theirs = (statistics.median(seconds[name]) for name in ("cold", "warm", "other"))
    speeds = f"{size / cold:8.1f} {size / warm:8.1f} {size / theirs:8.1f}"
    print(f"{title:44} {speeds} {theirs / cold:8.2f} {theirs / warm:8.2f}", flush=True)


def main() -> None:
    """Compare on each corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", type=Path, nargs="+")
    parser.add_argument("--model", type=Path, help="a Unigram .model (default: one is trained)")
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--megabytes", type=float, default=6, help="of each corpus")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import sentencepiece
    from tokenizers import Tokenizer as HuggingFace

    with tempfile.TemporaryDirectory() as folder:
        model = args.model or Path(folder, "trained.model")
        if args.model is None:
            model.write_bytes(trained(args.corpora, args.vocab_size))
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
        text = tokenizer_json(model)
        library = HuggingFace.from_str(text)

        def by_tokenizers(texts: list[str]) -> list[list[int]]:
            return [found.ids for found in library.encode_batch_fast(texts)]

        def by_sentencepiece(texts: list[str]) -> list[list[int]]:
            return list(processor.encode(texts, num_threads=1))

        print(f"{'MB/s':44} {'cold':>8} {'warm':>8} {'other':>8} {'ratio':>8} {'warm':>8}")
        for path in args.corpora:
            texts = texts_of(path, args.megabytes)
            compare(
                f"{path.stem}, sentencepiece",
                lambda: Tokenizer.from_sentencepiece(str(model)),
                by_sentencepiece,
                texts,
                args.runs,
            )
            compare(
                f"{path.stem}, tokenizers",
                lambda: Tokenizer.from_json(text),
                by_tokenizers,
                texts,
                args.runs,
            )


if __name__ == "__main__":
    main()

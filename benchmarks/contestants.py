"""What each contestant of benchmarks/compare.py runs, in a process and an environment of its own.

    PYTHON benchmarks/contestants.py TASK NAME SETTINGS

TASK is a function below, NAME a contestant, and SETTINGS a JSON object, the function's arguments
after the name. The last line of output is JSON. A contestant is called by its fastest documented
way. This module imports a contestant's package only where it is used, and no package of the others.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
WARM_UP = "It's ten words that nothing else here depends on."


def package_of(name: str) -> str:
    """Return the package of a contestant, whose name may end with a version or a way of calling."""
    return name.partition(",")[0].partition("-0")[0].partition("-1")[0]


def texts_of(paths: list[str], megabytes: float = 1e9) -> Iterator[str]:
    """Yield the documents of JSON Lines files.

    Args:
        paths: The files.
        megabytes: End with the document that reaches this size.
    """
    left = megabytes * 1e6
    for path in paths:
        with Path(path).open("rb") as lines:
            for line in lines:
                text = json.loads(line)["text"]
                yield text
                left -= len(text.encode())
                if left <= 0:
                    return


# ---- training ----


@cache
def byte_of_character() -> dict[str, int]:
    """Return the bytes that the characters of a byte-level vocabulary mean."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + i): b for i, b in enumerate(hidden)}


def byte_level(token: str) -> bytes:
    """Return the bytes of a token of a byte-level vocabulary."""
    to_byte = byte_of_character()
    return bytes(to_byte[char] for char in token)


def train_gigatoken(paths: list[str], vocab_size: int) -> list[bytes]:
    """Train with gigatoken."""
    import gigatoken

    vocab, _ = gigatoken.train_bpe(gigatoken.JsonlFileSource(paths), vocab_size, [])
    return [vocab[i] for i in sorted(vocab)]


def train_tokenizers(paths: list[str], vocab_size: int) -> list[bytes]:
    """Train with Hugging Face's tokenizers."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts_of(paths), trainer)
    vocab = tokenizer.get_vocab()
    return [byte_level(token) for token in sorted(vocab, key=vocab.__getitem__)]


def train_wordpiece(paths: list[str], vocab_size: int) -> list[bytes]:
    """Train in BERT's manner with Hugging Face's tokenizers, as configs/wordpiece_30k.yaml does."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, min_frequency=2, limit_alphabet=1000, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
    )  # fmt: skip
    tokenizer.train_from_iterator(texts_of(paths), trainer)
    vocab = tokenizer.get_vocab()
    return [token.encode() for token in sorted(vocab, key=vocab.__getitem__)]


def train_rustbpe(paths: list[str], vocab_size: int) -> list[bytes]:
    """Train with rustbpe."""
    import rustbpe

    tokenizer = rustbpe.Tokenizer()
    tokenizer.train_from_iterator(texts_of(paths), vocab_size, pattern=GPT2)
    return [bytes(token) for token, _ in tokenizer.get_mergeable_ranks()]


def train_sentencepiece(paths: list[str], vocab_size: int) -> list[bytes]:
    """Train with SentencePiece: BPE over characters of words after spaces, its own algorithm."""
    import io

    import sentencepiece

    model = io.BytesIO()
    lines = (line for text in texts_of(paths) for line in text.splitlines() if line)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines, model_writer=model, vocab_size=vocab_size, model_type="bpe",
        num_threads=int(os.environ["BENCHMARK_THREADS"]), max_sentence_length=1 << 20,
        byte_fallback=True, minloglevel=2,
    )  # fmt: skip
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [tokenizer.id_to_piece(i).encode() for i in range(tokenizer.vocab_size())]


TRAINERS: dict[str, Callable[[list[str], int], list[bytes]]] = {
    "gigatoken": train_gigatoken,
    "tokenizers": train_tokenizers,
    "tokenizers wordpiece": train_wordpiece,
    "rustbpe": train_rustbpe,
    "sentencepiece": train_sentencepiece,
}


def train(name: str, paths: list[str], vocab_size: int, output: str, wordpiece: bool) -> None:
    """Train, and write the tokens in the order of their ids, as lines of hexadecimal digits.

    Args:
        name: The contestant.
        paths: JSON Lines files.
        vocab_size: Entries of the vocabulary.
        output: The file to write.
        wordpiece: Whether to train WordPiece instead of byte-level BPE.
    """
    trainer = package_of(name) + " wordpiece" * wordpiece
    tokens = TRAINERS[trainer](paths, vocab_size)
    Path(output).write_text("".join(f"{token.hex()}\n" for token in tokens))


def trained(name: str, output: str) -> None:
    """Write the tokens of a tokenizer folder of bpe-beam, as `train` does.

    Args:
        name: The contestant.
        output: The folder; the tokens go to the file `FOLDER.tokens`.
    """
    model = json.loads(Path(output, "tokenizer.json").read_text())["model"]
    to_bytes = str.encode if model["type"] == "WordPiece" else byte_level
    vocab = model["vocab"]
    tokens = [to_bytes(token) for token in sorted(vocab, key=vocab.__getitem__)]
    Path(f"{output}.tokens").write_text("".join(f"{token.hex()}\n" for token in tokens))


# ---- tokenizing files ----


def tokenize(name: str, paths: list[str], tokenizer: str, output: str) -> None:
    """Encode JSON Lines files, and write the ids of all documents and their numbers of tokens.

    Args:
        name: The contestant.
        paths: JSON Lines files.
        tokenizer: A tokenizer.json.
        output: The folder to write `ids.npy` and `lengths.npy` to.
    """
    import numpy as np

    if name == "gigatoken":
        import awkward as ak
        import gigatoken

        encoder = gigatoken.Tokenizer.from_json(Path(tokenizer).read_bytes())
        rows = encoder.encode_files(gigatoken.JsonlFileSource(paths))
        lengths, ids = ak.to_numpy(ak.num(rows)), ak.to_numpy(ak.flatten(rows))
    else:
        from tokenizers import Tokenizer

        hf = Tokenizer.from_file(tokenizer)
        encode = getattr(hf, "encode_batch_fast", hf.encode_batch)
        found = [e.ids for e in encode(list(texts_of(paths)), add_special_tokens=False)]
        lengths = np.array([len(row) for row in found])
        ids = np.concatenate([np.asarray(row, np.uint32) for row in found])
    Path(output).mkdir(parents=True)
    small = ids.max(initial=0) < 1 << 16
    np.save(Path(output, "ids.npy"), ids.astype(np.uint16 if small else np.int32))
    np.save(Path(output, "lengths.npy"), lengths.astype(np.int32))


def tokenized(name: str, output: str) -> dict[str, Any]:
    """Return the number and the hash of all ids that a run wrote, as 32 bits each.

    Args:
        name: The contestant.
        output: Its output: shards of Megatron, or what `tokenize` writes.
    """
    import numpy as np

    folder = Path(output)
    digest, total = hashlib.sha256(), 0
    arrays = [np.load(path, mmap_mode="r") for path in folder.glob("ids.npy")]
    for index in sorted(folder.rglob("*.idx")):
        with index.open("rb") as file:
            width = file.read(18)[17]  # after the magic bytes and the version
        arrays.append(np.memmap(index.with_suffix(".bin"), {8: np.uint16, 4: np.int32}[width]))
    for array in arrays:
        for start in range(0, len(array), 1 << 22):
            digest.update(array[start : start + (1 << 22)].astype(np.uint32).tobytes())
        total += len(array)
    return {"tokens": total, "sha256": digest.hexdigest()[:16]}


# ---- in one process: encoding and decoding ----


class Codec:
    """A contestant's way to encode texts and to decode ids, with one thread.

    Attributes:
        encode: From what `prepare` returns to ids of any form.
        rows: From such ids to a list of arrays, one for each text.
        decode: From what `prepare_ids` returns to texts (str, bytes or Arrow strings).
        prepare: From a list of texts to what `encode` wants.
        prepare_ids: From `rows` to what `decode` wants.
    """

    def __init__(
        self,
        encode: Callable[[Any], Any],
        decode: Callable[[Any], Any],
        rows: Callable[[Any], list[Any]] = list,
        prepare: Callable[[list[str]], Any] = list,
        prepare_ids: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        self.encode = encode
        self.decode = decode
        self.rows = rows
        self.prepare = prepare
        self.prepare_ids = prepare_ids or (
            lambda rows: [[int(number) for number in row] for row in rows]
        )


def codec_bpe_beam(path: str, arrow: bool) -> Codec:
    """Return the codec of bpe-beam.

    Args:
        path: A tokenizer.json.
        arrow: Whether texts and ids are Arrow arrays, as in the jobs, or lists.
    """
    from bpe_beam import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    found = Codec(
        partial(tokenizer.encode_batch, output="arrow"),
        tokenizer.decode_batch,
        rows=lambda ids: [row.values.to_numpy() for row in ids],
    )
    if arrow:
        import pyarrow as pa

        found.prepare = lambda texts: pa.array(texts, pa.large_string())
        found.decode = partial(tokenizer.decode_batch, output="arrow")
        found.prepare_ids = lambda rows: pa.array(rows, pa.large_list(pa.uint32()))
    return found


def codec_gigatoken(path: str) -> Codec:
    """Return the codec of gigatoken."""
    import awkward as ak
    import gigatoken
    import numpy as np

    tokenizer = gigatoken.Tokenizer.from_json(Path(path).read_bytes())
    return Codec(
        lambda texts: tokenizer.encode_batch(texts, parallel=False),
        lambda rows: [tokenizer.decode(row) for row in rows],
        rows=lambda ids: [ak.to_numpy(row) for row in ids],
        prepare_ids=lambda rows: [np.asarray(row, np.uint32) for row in rows],
    )


def codec_fastokens(path: str) -> Codec:
    """Return the codec of fastokens."""
    import fastokens

    tokenizer = fastokens.Tokenizer.from_file(path)
    return Codec(
        tokenizer.encode_batch,
        tokenizer.decode_batch,
        rows=lambda found: [getattr(row, "ids", row) for row in found],
    )


def codec_tokenizers(path: str) -> Codec:
    """Return the codec of Hugging Face's tokenizers: its call without offsets."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)

    def decode_each(rows: Any, **options: bool) -> list[str]:
        return [tokenizer.decode(row, **options) for row in rows]

    decode = getattr(tokenizer, "decode_batch", decode_each)
    return Codec(
        lambda texts: encode(texts, add_special_tokens=False),
        lambda rows: decode(rows, skip_special_tokens=False),
        rows=lambda found: [getattr(row, "ids", row) for row in found],
    )


def codec_tiktoken(path: str) -> Codec:
    """Return the codec of tiktoken, with the file's tokens and pattern."""
    import tiktoken

    spec = json.loads(Path(path).read_text())
    special = {token["content"]: token["id"] for token in spec["added_tokens"]}
    ranks = {
        byte_level(token): rank
        for token, rank in spec["model"]["vocab"].items()
        if token not in special
    }
    steps = spec["pre_tokenizer"].get("pretokenizers", [spec["pre_tokenizer"]])
    pattern = next((step["pattern"]["Regex"] for step in steps if "pattern" in step), GPT2)
    encoding = tiktoken.Encoding(
        "file", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special
    )
    return Codec(
        lambda texts: encoding.encode_ordinary_batch(texts, num_threads=1),
        lambda rows: encoding.decode_batch(rows, num_threads=1),
    )


CODECS: dict[str, Callable[[str], Codec]] = {
    "bpe-beam": lambda path: codec_bpe_beam(path, arrow=False),
    "bpe-beam, Arrow": lambda path: codec_bpe_beam(path, arrow=True),
    "gigatoken": codec_gigatoken,
    "fastokens": codec_fastokens,
    "tokenizers": codec_tokenizers,
    "tiktoken": codec_tiktoken,
}


class Clock:
    """The wall and CPU seconds of named phases."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = {}
        self.cpu: dict[str, float] = {}

    def __call__(self, phase: str, task: Callable[[], Any]) -> Any:
        """Run a task, and return what it returns."""
        wall, cpu = time.perf_counter(), time.process_time()
        result = task()
        self.cpu[phase] = time.process_time() - cpu
        self.wall[phase] = time.perf_counter() - wall
        return result


def ids_answer(rows: list[Any]) -> dict[str, Any]:
    """Return the number of ids and the hash of all of them, with the length of each row."""
    import numpy as np

    digest, total = hashlib.sha256(), 0
    for row in rows:
        array = np.asarray(row, np.uint32)
        digest.update(len(array).to_bytes(8, "little") + array.tobytes())
        total += len(array)
    return {"tokens": total, "sha256": digest.hexdigest()[:16]}


def encode(
    name: str, paths: list[str], tokenizer: str, megabytes: float, prefix: float
) -> dict[str, Any]:
    """Measure loading, the first short text, and two passes over a corpus: cold and warm.

    Args:
        name: The contestant.
        paths: JSON Lines files.
        tokenizer: A tokenizer.json.
        megabytes: Size of the text at most.
        prefix: Megabytes of text whose ids have an answer of their own, which contestants that
            encode no more can be compared with.
    """
    texts = list(texts_of(paths, megabytes))
    clock = Clock()
    codec = clock("load", lambda: CODECS.get(name, CODECS[package_of(name)])(tokenizer))
    few, prepared = codec.prepare([WARM_UP]), codec.prepare(texts)
    clock("first", lambda: codec.encode(few))
    found = clock("cold", lambda: codec.encode(prepared))
    rows = codec.rows(found)
    answer = {"prefix": ids_answer(rows[: sum(1 for _ in texts_of(paths, prefix))])}
    if megabytes > prefix:
        answer["all"] = ids_answer(rows)
    del found, rows
    clock("warm", lambda: codec.encode(prepared))
    size = sum(len(text.encode()) for text in texts)
    return {"wall": clock.wall, "cpu": clock.cpu, "answer": answer, "bytes": size}


def decode(name: str, paths: list[str], tokenizer: str, megabytes: float) -> dict[str, Any]:
    """Measure decoding the ids of a corpus, document by document in one batch.

    Args:
        name: The contestant.
        paths: JSON Lines files.
        tokenizer: A tokenizer.json.
        megabytes: Size of the text at most.
    """
    texts = list(texts_of(paths, megabytes))
    codec = CODECS.get(name, CODECS[package_of(name)])(tokenizer)
    ids = codec.prepare_ids(codec.rows(codec.encode(codec.prepare(texts))))
    clock = Clock()
    found = clock("all", lambda: codec.decode(ids))
    digest, size = hashlib.sha256(), 0
    for text in found:
        text = text.as_py() if hasattr(text, "as_py") else text
        data = text if isinstance(text, bytes) else text.encode()
        digest.update(data)
        size += len(data)
    answer = {"bytes": size, "sha256": digest.hexdigest()[:16]}
    return {"wall": clock.wall, "cpu": clock.cpu, "answer": answer, "bytes": size}


TASKS: dict[str, Callable[..., dict[str, Any] | None]] = {
    task.__name__: task for task in (train, trained, tokenize, tokenized, encode, decode)
}


def main() -> None:
    """Run a task, and print its result with the version of the contestant's package."""
    task, name, settings = sys.argv[1:]
    result = TASKS[task](name, **json.loads(settings)) or {}
    version = importlib.metadata.version(package_of(name))
    print(f"\n{json.dumps({**result, 'version': version})}")


if __name__ == "__main__":
    main()

"""A corpus through all jobs by their command lines: counts, tokenizer, shards, proof, and back."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import regex
import tokenizers
from command_line import run, run_whole
from made_text import documents, write
from read_back import read_shards, tree

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
END = "<|endoftext|>"
VOCAB_SIZE = 600

# What JSON can hold and a line of text cannot; and what only looks like a special token's end.
BY_JSON_ONLY = [
    "two\nlines\r\nand more\n",
    "\u2028 \u0085 \x00 \ufeff",
    f"{END} at the start, {END}{END} twice, and <|endoftext|",
    END,
]


@dataclass
class Chain:
    """One corpus, and what the jobs made of it."""

    folder: Path
    texts: list[str]
    inputs: list[Path]

    @property
    def tokenizer(self) -> Path:
        return self.folder / "tok" / "tokenizer.json"

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens"


@pytest.fixture(scope="module", params=["txt", "jsonl.gz", "jsonl", "txt.zst"])
def chain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """Three files, of which the second is larger than a split and the third empty."""
    folder = tmp_path_factory.mktemp("chain")
    kind = request.param
    pieces = [documents(60, seed=1), documents(300, seed=2), []]
    if kind.startswith("jsonl"):
        pieces[0] += BY_JSON_ONLY
    else:
        pieces[0] += [f"{END} at the start, {END}{END} twice, and <|endoftext|", END]
    inputs = [write(folder / "data" / f"{i}.{kind}", texts) for i, texts in enumerate(pieces)]
    made = Chain(folder, [text for texts in pieces for text in texts], inputs)
    reading = ("--input", *inputs, "--range-bytes", "5KB")
    count = run_whole("count", *reading, "--output", folder / "counts", "--special-token", END)
    (folder / "count.json").write_bytes(count.out)
    size = ("--vocab-size", str(VOCAB_SIZE))
    run_whole("train", "--counts", folder / "counts", *size, "--output", folder / "tok")
    encoding = ("--tokenizer", made.tokenizer, "--append", END)
    tokenize = run_whole("tokenize", *reading, *encoding, "--output", made.tokens)
    (folder / "tokenize.json").write_bytes(tokenize.out)
    return made


def expected_words(texts: list[str]) -> Counter[str]:
    """The words of the texts by the published pattern, special tokens cut out before."""
    pieces = (piece for text in texts for piece in text.split(END))
    return Counter(word for piece in pieces for word in regex.findall(GPT2, piece))


def hugging_face(chain: Chain) -> tokenizers.Tokenizer:
    """The tokenizer that was trained, run by Hugging Face's engine; special tokens are text."""
    loaded = tokenizers.Tokenizer.from_file(str(chain.tokenizer))
    loaded.encode_special_tokens = True
    return loaded


def test_counts_are_those_of_the_published_pattern(chain: Chain) -> None:
    parts = sorted((chain.folder / "counts").glob("part-*.parquet"))
    counted: Counter[str] = Counter()
    for part in parts:
        table = pq.read_table(part)
        rows = dict(zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True))
        assert not counted.keys() & rows.keys(), "a word stands in one part only"
        counted.update(rows)
    assert counted == expected_words(chain.texts)


def test_the_tokenizer_has_what_was_asked_for(chain: Chain) -> None:
    vocab = json.loads((chain.folder / "tok" / "vocab.json").read_bytes())
    merges = (chain.folder / "tok" / "merges.txt").read_text().splitlines()[1:]
    assert list(vocab.values()) == list(range(VOCAB_SIZE))
    assert vocab[END] == 0
    assert len(merges) >= VOCAB_SIZE - 257
    loaded = hugging_face(chain)
    assert loaded.get_vocab(with_added_tokens=True) == vocab


def test_merges_are_those_of_hugging_face(tmp_path: Path, texts: list[str]) -> None:
    corpus = write(tmp_path / "a.txt", texts)
    run_whole("train", "--input", corpus, "--vocab-size", "900", "--output", tmp_path / "tok")
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=900,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator(texts, trainer)
    model = json.loads(theirs.to_str())["model"]
    pairs = [tuple(m.split(" ") if isinstance(m, str) else m) for m in model["merges"]]
    lines = (tmp_path / "tok" / "merges.txt").read_text().splitlines()[1:]
    assert [tuple(line.split(" ")) for line in lines] == pairs
    assert json.loads((tmp_path / "tok" / "vocab.json").read_bytes()) == model["vocab"]


def test_training_straight_from_the_corpus_gives_the_same_tokenizer(chain: Chain) -> None:
    out = chain.folder / "straight"
    run_whole(
        *("train", "--input", *chain.inputs, "--vocab-size", str(VOCAB_SIZE)),
        *("--special-token", END, "--output", out),
    )
    for name in ("tokenizer.json", "vocab.json", "merges.txt"):
        assert (out / name).read_bytes() == (chain.folder / "tok" / name).read_bytes()
    counts = tree(chain.folder / "counts")
    straight = tree(out / "counts")
    # Only the plan differs, which was cut otherwise, and so the job.
    other = [name for name in counts if counts[name] != straight[name]]
    assert other == ["__job", "__manifest", "__plan"]


def test_shards_hold_the_documents(chain: Chain) -> None:
    loaded = hugging_face(chain)
    shards = read_shards(chain.tokens)
    assert len(list(chain.tokens.glob("*.bin"))) > 1
    assert [ids[-1] for ids in shards] == [0] * len(chain.texts)
    expected = loaded.encode_batch(chain.texts, add_special_tokens=False)
    assert [ids[:-1] for ids in shards] == [encoding.ids for encoding in expected]
    decoded = [loaded.decode(ids[:-1], skip_special_tokens=False) for ids in shards]
    assert decoded == chain.texts


def test_verify_proves_the_shards(chain: Chain) -> None:
    plain = run_whole("verify", chain.tokens).summary
    shards = read_shards(chain.tokens)
    assert plain["whole"] is True
    assert (plain["documents"], plain["tokens"]) == (len(shards), sum(map(len, shards)))
    assert plain["compared"] is None
    names = run_whole("verify", chain.tokens, "--input", *chain.inputs).summary
    full = run_whole("verify", chain.tokens, "--full", "--input", *reversed(chain.inputs)).summary
    assert len({plain["compared"], names["compared"], full["compared"]}) == 3


def test_verify_finds_a_flipped_bit_and_a_missing_shard(chain: Chain, tmp_path: Path) -> None:
    names = tree(chain.tokens)
    shard = next(name for name in names if name.endswith(".bin"))
    damaged = bytearray(names[shard])
    damaged[len(damaged) // 2] ^= 1
    for content in (bytes(damaged), None):
        for name, data in names.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(data)
        if content is None:
            (tmp_path / shard).unlink()
        else:
            (tmp_path / shard).write_bytes(content)
        ran = run("verify", tmp_path)
        assert ran.code == 1
        assert shard in ran.message
        assert "Traceback" not in ran.err


# Another text compresses to another size, which is seen without encoding it.
@pytest.mark.parametrize("chain", ["txt", "jsonl"], indirect=True)
def test_full_verification_finds_another_text_of_equal_size(chain: Chain, tmp_path: Path) -> None:
    inputs = [tmp_path / path.name for path in chain.inputs]
    for before, after in zip(chain.inputs, inputs, strict=True):
        after.write_bytes(before.read_bytes())
    data = inputs[1].read_bytes()
    at = data.index(b"tokenizer")
    inputs[1].write_bytes(data[:at] + b"T" + data[at + 1 :])
    assert run("verify", chain.tokens, "--input", *inputs).code == 0
    ran = run("verify", chain.tokens, "--full", "--input", *inputs)
    assert ran.code == 1
    assert "shard-" in ran.message
    assert "document" in ran.message


def test_summaries_tell_the_truth(chain: Chain) -> None:
    words = expected_words(chain.texts)
    text_bytes = sum(len(text.encode()) for text in chain.texts)
    count = json.loads((chain.folder / "count.json").read_bytes())
    assert count["job"] == "count"
    assert count["files"] == len(chain.inputs)
    assert (count["documents"], count["text_bytes"]) == (len(chain.texts), text_bytes)
    assert (count["words"], count["unique_words"]) == (words.total(), len(words))
    assert count["rejects"] == 0
    tokenize = json.loads((chain.folder / "tokenize.json").read_bytes())
    shards = read_shards(chain.tokens)
    assert tokenize["tokens"] == sum(map(len, shards))
    assert (tokenize["documents"], tokenize["text_bytes"]) == (len(shards), text_bytes)
    assert tokenize["bytes_per_token"] == pytest.approx(text_bytes / tokenize["tokens"])
    written = [path.stat().st_size for path in chain.tokens.glob("shard-*")]
    assert tokenize["shards_bytes"] == sum(written)
    assert tokenize["shards"] == len(written) // 2
    trained = json.loads((chain.folder / "tok" / "summary.json").read_bytes())
    assert trained["vocab_size"] == VOCAB_SIZE
    merges = (chain.folder / "tok" / "merges.txt").read_text().splitlines()[1:]
    assert trained["merges"] == len(merges)


def test_inspect_shows_each_kind(chain: Chain) -> None:
    words = expected_words(chain.texts)
    kinds = {"tok": "tokenizer", "tok/tokenizer.json": "tokenizer", "counts": "counts"}
    for name, kind in {**kinds, "tokens": "shards"}.items():
        shown = run("inspect", chain.folder / name)
        assert (shown.code, shown.err) == (0, "")
        assert kind in shown.out.decode().splitlines()[1]
    counts = run("inspect", chain.folder / "counts").out.decode()
    (_, most), *_ = words.most_common(1)
    assert f"{most:,} " in counts.partition("most frequent words")[2].splitlines()[0]
    assert repr(chain.texts[0])[1:15] in run("inspect", chain.tokens).out.decode()


def test_encode_and_decode_are_inverse(chain: Chain) -> None:
    loaded = hugging_face(chain)
    use = ("--tokenizer", chain.tokenizer)
    for text in chain.texts[-3:] + chain.texts[60:64]:
        ran = run("encode", *use, "--", text) if text else run("encode", *use, stdin=b"")
        assert (ran.code, ran.err) == (0, "")
        ids = [int(number) for number in ran.out.split()]
        assert ids == loaded.encode(text, add_special_tokens=False).ids
        from_stdin = run("encode", *use, stdin=text.encode() + b"\n")
        assert from_stdin.out == ran.out
        assert run("decode", *use, stdin=ran.out).out == text.encode()
        if ids:
            assert run("decode", *use, *map(str, ids)).out == text.encode()


def test_full_verification_knows_how_the_shards_were_made(tmp_path: Path) -> None:
    rows = [{"body": f"{text} {END} | {text}"} for text in documents(40, seed=3)]
    corpus = tmp_path / "a.txt"
    corpus.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    arguments = ("--input", corpus, "--text-field", "body")
    lines = ("--input-format", "jsonl")
    train = (*lines, "--vocab-size", "300", "--special-token", END, "--output", tmp_path / "tok")
    run_whole("train", *arguments, *train)
    use = ("--tokenizer", tmp_path / "tok" / "tokenizer.json")
    for name, more in {
        "framed": (*lines, "--append", END, "--prepend", END, "--range-bytes", "1KB"),
        "allowed": (*lines, "--allowed-special", "all"),
        "named": (*lines, "--allowed-special", END),
        "separated": ("--input-format", "text", "--document-separator", " | "),
        "file": ("--input-format", "text", "--document-separator", "file"),
    }.items():
        out = tmp_path / name
        run_whole("tokenize", *arguments, *use, *more, "--output", out)
        assert run_whole("verify", out, "--full", "--input", corpus).summary["whole"] is True
    made = {
        path: read_shards(tmp_path / path) for path in ("framed", "allowed", "separated", "file")
    }
    assert len({repr(shards) for shards in made.values()}) == 4
    assert len(made["separated"]) > len(made["framed"]) > len(made["file"]) == 1


def test_names_of_any_kind(tmp_path: Path) -> None:
    folder = tmp_path / "a #1 100% [b]" / "ü :: {x}"
    texts = documents(30)
    corpus = write(folder / "what? *.jsonl", texts)
    write(folder / "what? other.jsonl", ["not meant"])
    arguments = ("--input", corpus, "--vocab-size", "300", "--special-token", END)
    run_whole("train", *arguments, "--output", folder / "tok #[1]?")
    use = ("--tokenizer", folder / "tok #[1]?" / "tokenizer.json", "--append", END)
    run_whole("tokenize", "--input", corpus, *use, "--output", folder / "tokens *")
    assert len(read_shards(folder / "tokens *")) == len(texts)
    proof = run_whole("verify", folder / "tokens *", "--full", "--input", corpus)
    assert proof.summary["whole"] is True
    shown = run("inspect", folder / "tokens *")
    assert (shown.code, shown.err) == (0, "")


def _jobs(chain: Chain) -> dict[str, tuple[str | Path, ...]]:
    """The commands that made the chain's folders."""
    reading = ("--input", *chain.inputs, "--range-bytes", "5KB")
    encoding = ("--tokenizer", chain.tokenizer, "--append", END)
    train = ("train", "--counts", chain.folder / "counts", "--vocab-size", str(VOCAB_SIZE))
    return {
        "counts": ("count", *reading, "--special-token", END),
        "tok": train,
        "tokens": ("tokenize", *reading, *encoding),
    }


@pytest.mark.parametrize("name", ["counts", "tok", "tokens"])
def test_what_is_finished_is_not_done_again(chain: Chain, name: str) -> None:
    folder = chain.folder / name
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    again = run_whole(*_jobs(chain)[name], "--output", folder).summary
    assert again["was_finished_before"] is True
    # What tells of the run that finished it is not said of this one.
    assert not {"jobs", "counting_seconds", "learning_seconds"} & again.keys()
    assert not again.get("counters")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    for key in ("documents", "text_bytes", "rejects"):
        expected = json.loads((chain.folder / "count.json").read_bytes())
        assert again[key] == expected[key]


@pytest.mark.parametrize("chain", ["txt"], indirect=True)
@pytest.mark.parametrize("name", ["counts", "tok", "tokens"])
def test_what_is_missing_is_made_again(chain: Chain, name: str) -> None:
    folder = chain.folder / name
    before = tree(folder)
    for file in (min(before), max(before), sorted(before)[len(before) // 2]):
        if file == "__job":
            continue
        for damage in (lambda path: path.unlink(), lambda path: path.write_bytes(b"short")):
            damage(folder / file)
            run_whole(*_jobs(chain)[name], "--output", folder)
            assert tree(folder) == before, file


@pytest.mark.parametrize("below", ["/**/*", ""])
def test_the_same_command_again_with_its_output_below_the_input(tmp_path: Path, below: str) -> None:
    data = tmp_path / "d"
    texts = documents(60, seed=3)
    write(data / "a.jsonl", texts)
    inputs = ("--input", f"{data}{below}", "--summary-file", data / "summary.txt", "--quiet")
    tokenizer = tmp_path / "tok"
    run_whole("train", "--input", data, "--vocab-size", "300", "--output", tokenizer)
    packed = ("--shuffle-seed", "1", "--validation-share", "30%")
    jobs = (
        ("count", "--output", data / "counts"),
        ("train", "--vocab-size", "300", "--output", data / "tok"),
        ("tokenize", "--tokenizer", tokenizer, "--output", data / "tokens"),
        ("tokenize", "--tokenizer", tokenizer, "--output", data / "packed", *packed),
        ("evaluate", "--tokenizer", tokenizer, "--output", data / "report.json"),
    )
    for job in jobs:
        output = Path(job[job.index("--output") + 1])
        for _ in range(2):
            assert run(*job, *inputs).code == 0
        if job[0] in ("count", "tokenize"):
            before = tree(output)
            for manifest in output.glob("**/__manifest"):
                manifest.unlink()
            assert run(*job, *inputs).code == 0
            assert tree(output) == before
        if job[0] == "tokenize":
            (data / "summary.txt").unlink()
            folder = output / "train" if "--validation-share" in job else output
            verified = run("verify", folder, "--full", "--input", f"{data}{below}", "--quiet")
            assert verified.code == 0, verified.err
        if output.is_dir():
            shutil.rmtree(output)
        else:
            assert json.loads(output.read_bytes())["words"]["documents"] == len(texts)


@pytest.mark.parametrize("packed", [(), ("--shuffle-seed", "1", "--validation-share", "40%")])
def test_a_mix_of_fields_becomes_one_folder(tmp_path: Path, packed: tuple[str, ...]) -> None:
    texts = documents(40, seed=5)
    data = tmp_path / "d"
    (data / "code").mkdir(parents=True)
    columns = {"content": texts[20:], "key": [f"c{number}" for number in range(20)]}
    pq.write_table(pa.table(columns), data / "code" / "a.parquet")
    rows = [{"text": text, "id": f"w{number}"} for number, text in enumerate(texts[:20])]
    (data / "web.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    fields = ("--text-field", "code=content", "--id-field", "id", "--id-field", "code=key")
    reading = ("--input", data, *fields)
    tok = ("--vocab-size", "300", "--output", tmp_path / "tok")
    assert run_whole("train", *reading, *tok).summary["documents"] == 40
    out = tmp_path / "tokens"
    command = ("tokenize", *reading, *packed, "--tokenizer", tmp_path / "tok", "--output", out)
    for _ in range(2):
        ran = run_whole(*command, "--format", "parquet")
        assert ran.summary["documents"] == 40
        assert "none of the first" not in ran.err
    folders = [out / part for part in ("train", "validation")] if packed else [out]
    ids = {
        name
        for folder in folders
        for file in folder.glob("shard-*.parquet")
        for name in pq.read_table(file).column("id").to_pylist()
    }
    assert ids == {row["id"] for row in rows} | {*columns["key"]}
    for folder in folders:
        assert run("verify", folder, "--full", "--input", data).code == 0
    other = (*reading, "--id-field", "web=nosuch", "--output", tmp_path / "counts")
    assert "'nosuch' is the field of ids, but none of the first 20" in run("count", *other).err
    unnamed = (*command[:1], "--input", data / "code", "--text-field", "content")
    said = run(*unnamed, *command[-4:-2], "--format", "parquet", "--output", tmp_path / "p").err
    assert (
        "'id' is the field of ids, but none of the first 20 documents has it; the first are in a"
        in said
    )
    (data / "b.jsonl").write_text('{"body": "b"}\n')
    lacking = run("count", *reading, "--max-rejects", "0", "--output", tmp_path / "l")
    assert (lacking.code, "with --text-field FILE=FIELD" in lacking.message) == (1, True)
    wrong = run("count", "--input", data, "--text-field", "cod=x", "--output", tmp_path / "no")
    assert (wrong.code, "got 'cod', which means no file" in wrong.message) == (2, True)

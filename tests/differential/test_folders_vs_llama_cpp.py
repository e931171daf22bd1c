"""Trained folders in llama.cpp, converted by its package gguf: the same ids by node-llama-cpp.

Both are installed on demand, in a folder of their own beside what the tests of servers build.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run_whole
from made_text import documents
from starting import CACHE, locked, missing

from bpe_beam import Tokenizer

pytestmark = pytest.mark.scheduled

GGUF = ("gguf==0.19.0", "sentencepiece==0.2.3", "protobuf>=4")
NODE = ("node-llama-cpp@3.22.1", "@node-llama-cpp/linux-x64@3.22.1")
KINDS = {
    "gpt-2": ("--eos-token", "<|endoftext|>"),
    "llama": (
        *("--pretokenizer", "metaspace", "--normalizer", "dummy_prefix", "--byte-fallback"),
        *("--unk-token", "<unk>", "--bos-token", "<s>", "--eos-token", "</s>"),
    ),
}
HARD = [
    "  a  b ",
    "a\n\n b\t\tc",
    "don't I'LL",
    "日本 👩\u200d👩\u200d👧 é",
    "x" * 300,
    "3.14 1234567",
]

CONVERT = """
import json, sys
from pathlib import Path
import gguf, gguf.vocab
folder, kind = Path(sys.argv[1]), sys.argv[3]
writer = gguf.GGUFWriter(sys.argv[2], "llama")
if kind == "llama":
    tokens, scores, kinds = zip(*gguf.vocab.SentencePieceVocab(folder).all_tokens())
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_scores(list(scores))
else:
    file = json.loads((folder / "tokenizer.json").read_bytes())
    special = {token["content"]: token["id"] for token in file["added_tokens"]}
    ids = {**file["model"]["vocab"], **special}
    tokens = sorted(ids, key=ids.get)
    kinds = [3 if token in special else 1 for token in tokens]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(kind)
writer.add_token_list(list(tokens))
writer.add_token_types([int(kind) for kind in kinds])
gguf.vocab.SpecialVocab(folder, load_merges=kind != "llama").add_to_gguf(writer)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
"""
ENCODE = """
import {readFileSync, writeFileSync} from "fs";
import {getLlama} from "node-llama-cpp";
const llama = await getLlama({gpu: false, build: "never", logLevel: "error", progressLogs: false});
const [path, texts, ids] = process.argv.slice(2);
const model = await llama.loadModel({modelPath: path, vocabOnly: true});
const all = JSON.parse(readFileSync(texts, "utf8"));
writeFileSync(ids, JSON.stringify(all.map(text => model.tokenize(text, false))));
process.exit(0);
"""


def run(*command: str | Path) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        missing(str(error))


@pytest.fixture(scope="module")
def programs() -> Path:
    """The folder of both programs."""
    folder = CACHE / "llama-cpp-3.22.1"
    with locked(folder):
        if not (folder / "installed").exists():
            run(sys.executable, "-m", "venv", folder / "python")
            run(folder / "python" / "bin" / "pip", "install", "-q", *GGUF)
            # The optional packages are those of all systems and graphics cards: 700 MB.
            run("npm", "install", "--silent", "--prefix", folder, "--omit=optional", *NODE)
            (folder / "installed").touch()
    (folder / "encode.mjs").write_text(ENCODE)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_ids(kind: str, programs: Path, tmp_path: Path) -> None:
    texts = [*HARD, *documents(200)]
    (tmp_path / "in.txt").write_text("\n".join(documents(60)))
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    arguments = ("train", "--input", tmp_path / "in.txt", "--vocab-size", "900", *KINDS[kind])
    run_whole(*arguments, "--output", tmp_path / "tok")
    model, ids = tmp_path / "model.gguf", tmp_path / "ids.json"
    run(programs / "python" / "bin" / "python", "-c", CONVERT, tmp_path / "tok", model, kind)
    run("node", programs / "encode.mjs", model, tmp_path / "texts.json", ids)
    ours = Tokenizer.from_file(str(tmp_path / "tok"))
    assert json.loads(ids.read_bytes()) == [ours.encode(text) for text in texts]

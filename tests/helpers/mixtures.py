"""A small mixture for readers of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from made_text import documents

import bpe_beam


def made_mixture(folder: Path, **options: Any) -> Path:
    """Return the folder of a mixture of two sources in several shards."""
    tokenizer = bpe_beam.train(documents(9, seed=1), vocab_size=280)
    for seed, name in enumerate(("web", "code")):
        corpus = folder / f"{name}.txt"
        corpus.write_text("".join(f"{text}\n" for text in documents(30, seed=seed)))
        bpe_beam.tokenize(corpus, tokenizer=tokenizer, output=folder / f"tokens-{name}")
    bpe_beam.mix(
        {name: folder / f"tokens-{name}" for name in ("web", "code")}, output=folder / "mixed",
        tokens=2000, share={"web": 0.7, "code": 0.3}, shuffle_seed=1, shard_tokens=800, **options,
    )  # fmt: skip
    assert len(list((folder / "mixed").glob("shard-*-of-*"))) > 1
    return folder / "mixed"

"""Figures of `evaluate` on held-out texts, against packages that compute them, where these are
installed: toklens (fertility, STRR, compression, parity), tokenization-scorer (entropies), pygini.

Figures that no package has are compared with their definitions in `reference_evaluation` alone.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from pathlib import Path
from pydoc_data import topics
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from command_line import run, run_whole

from bpe_beam import Tokenizer

TOPICS = [text for _, text in sorted(topics.topics.items())]
HELD_OUT = {"prose": "\n\n".join(TOPICS[1::2]), "code": inspect.getsource(argparse)}
SIZE = 1200


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with half of the topics, and with texts that are held out."""
    root = tmp_path_factory.mktemp("held-out")
    (root / "train.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in TOPICS[::2]))
    for source, text in HELD_OUT.items():
        (root / f"{source}.jsonl").write_text(json.dumps({"text": text, "source": source}) + "\n")
    return root


def figures_of(corpus: Path, pretokenizer: str) -> tuple[Path, dict[str, Any]]:
    """Return a tokenizer that is trained on the topics, and its figures on the held-out texts."""
    tokenizer = corpus / pretokenizer
    if not tokenizer.exists():
        run_whole("train", "--input", corpus / "train.jsonl", "--pretokenizer", pretokenizer,
            "--vocab-size", str(SIZE), "--symbols", "bytes", "--output", tokenizer)  # fmt: skip
    ran = run("evaluate", "--input", *(corpus / f"{source}.jsonl" for source in HELD_OUT),
        "--source-field", "source", "--parallel", "prose", "--pretokenizer", pretokenizer,
        "--tokenizer", tokenizer)  # fmt: skip
    assert ran.code == 0, ran.err
    (report,) = json.loads(ran.out)["tokenizers"]
    return tokenizer / "tokenizer.json", report["figures"]


@pytest.fixture
def toklens(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the metrics of toklens, which imports a loader of corpora that it does not need."""
    datasets = ModuleType("datasets")
    datasets.load_dataset = None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", datasets)
    return pytest.importorskip("toklens").analyzer.metrics


def test_compression_and_parity(corpus: Path, toklens: Any) -> None:
    """With a pattern whose words are the whole text."""
    tokenizers = pytest.importorskip("tokenizers")
    file, figures = figures_of(corpus, "gpt2")
    theirs = tokenizers.Tokenizer.from_file(str(file))
    for source, text in HELD_OUT.items():
        own = figures["sources"][source]
        found = toklens.compute_all(theirs, text, HELD_OUT["prose"])
        assert own["characters_per_token"] == pytest.approx(found["cpt"], rel=1e-12)
        assert own["bytes_per_token"] == pytest.approx(found["compression_ratio"], rel=1e-12)
        assert figures["premiums"][source] == pytest.approx(found["parity"], rel=1e-12)
    assert figures["premiums"]["code"] not in (0, 1)


def test_fertility_and_words_kept_whole(corpus: Path, toklens: Any) -> None:
    """Of words between blanks, which that package has."""
    tokenizers = pytest.importorskip("tokenizers")
    file, figures = figures_of(corpus, "whitespace_split")
    theirs = tokenizers.Tokenizer.from_file(str(file))
    for source, text in HELD_OUT.items():
        own = figures["sources"][source]
        assert own["words"] == len(text.split())
        assert own["tokens_per_word"] == pytest.approx(toklens.compute_fertility(theirs, text))
        kept = toklens.compute_strr(theirs, text)
        assert 0.1 < kept < 0.9
        assert own["words_kept_whole"] == pytest.approx(kept, rel=1e-12)


def test_entropies(corpus: Path) -> None:
    scorer = pytest.importorskip("tokenization_scorer")
    file, figures = figures_of(corpus, "gpt2")
    tokenizer = Tokenizer.from_file(str(file))
    for source, text in HELD_OUT.items():
        lines = [" ".join(map(str, tokenizer.encode(text)))]

        def score(metric: str, lines: list[str] = lines, **options: object) -> float:
            return float(scorer.score(lines, metric=metric, **options))

        own = figures["sources"][source]
        assert own["tokens"] == -score("sequence_length")
        assert own["entropy"] == pytest.approx(score("entropy"), rel=1e-9)
        assert own["renyi_entropy"] == pytest.approx(score("renyi_entropy", power=2.5), rel=1e-9)
        efficiency = score("renyi_efficiency", power=2.5, vocab=SIZE)
        assert own["renyi_efficiency"] == pytest.approx(efficiency, rel=1e-9)


def test_gini(corpus: Path) -> None:
    pygini = pytest.importorskip("pygini")
    _, figures = figures_of(corpus, "gpt2")
    for cost in ("tokens", "tokens_per_word"):
        values = [figures["sources"][source][cost] for source in HELD_OUT]
        own = figures["fairness"][cost]["gini"]
        assert own > 0.01
        assert own == pytest.approx(float(pygini.gini(np.array(values, np.float64))), rel=1e-6)

"""Unigram training with SentencePiece's rules, from equal seeds: SentencePiece's pieces."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

pytest.importorskip("sentencepiece")

import sentencepiece
from like_sentencepiece import Imitation
from made_text import documents
from piece_checks import words_of

import bpe_beam
from bpe_beam.training.learn import learn
from bpe_beam.training.recipe import UnigramRecipe


def lines_of(number: int) -> list[str]:
    """Return lines with single spaces, as SentencePiece trains on them."""
    texts = "\n".join(documents(number, seed=7)).splitlines()
    lines = (" ".join(text.split()) for text in texts)
    return [line for line in lines if line and not {"\u2581", "\u2585", "\0"} & {*line}]


def trained(
    lines: list[str], seeds: list[tuple[str, int]], size: int, folder: Path
) -> dict[str, float]:
    """Return the pieces and scores that SentencePiece learns from seeds."""
    (folder / "lines.txt").write_text("\n".join(lines) + "\n")
    rows = (f"{piece}\t{count}\n" for piece, count in seeds)
    (folder / "seeds.tsv").write_text("".join(rows))
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "lines.txt"), model_prefix=str(folder / "model"), vocab_size=size,
        model_type="unigram", num_threads=1, normalization_rule_name="identity", bos_id=-1,
        eos_id=-1, unk_id=0, minloglevel=2, max_sentence_length=1 << 30,
        seed_sentencepieces_file=str(folder / "seeds.tsv"),
    )  # fmt: skip
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "model.model"))
    ids = range(1, model.get_piece_size())
    return {model.id_to_piece(number): model.get_score(number) for number in ids}


@pytest.mark.parametrize(("number", "size"), [(200, 300), (1000, 400)])
def test_equal_seeds_give_equal_pieces(number: int, size: int, tmp_path: Path) -> None:
    lines = lines_of(number)
    counts = bpe_beam.count(lines, normalizer="dummy_prefix", pretokenizer="metaspace")
    words = words_of(
        {
            word: count
            for table in counts.tables.values()
            for word, count in zip(
                table["word"].to_pylist(), table["count"].to_pylist(), strict=True
            )
        }
    )
    recipe = UnigramRecipe(size)
    imitation = Imitation(words, recipe)
    theirs = trained(lines, imitation.seeds, size, tmp_path)
    ours = imitation.train()
    # Sums of floats decide between pieces that are expected equally often.
    lowest = min(score for piece, score in theirs.items() if len(piece) > 1)
    differ = {piece for piece in theirs.keys() - ours if theirs[piece] > lowest + 1e-5}
    assert not differ
    differences = [abs(theirs[piece] - ours[piece]) for piece in theirs.keys() & ours]
    assert statistics.median(differences) < 1e-4
    plain = learn(words, recipe).vocab
    assert len(theirs.keys() - plain) <= 0.06 * size

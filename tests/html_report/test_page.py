"""The HTML report: what it shows, that names and tokens are only text in it, and its samples."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from html_pages import HOSTILE, Elements, attribute_names, html_page, tokenizers, urls

from bpe_beam.errors import UsageError
from bpe_beam.evaluation.differences import ADDED_TOKEN, PartDifference
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.html_report import costly_words
from bpe_beam.html_report.figures import marked, visible
from bpe_beam.html_report.page import tokens_of
from bpe_beam.html_report.samples import MAX_SAMPLE, SAMPLES, read_samples
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return html_page(tmp_path_factory.mktemp("counts"))


def test_equal_arguments_give_equal_bytes(made: bytes, tmp_path: Path) -> None:
    assert html_page(tmp_path) == made


def test_elements_are_closed_and_ids_unique(made: bytes) -> None:
    elements = Elements(made)
    assert elements.unclosed == []
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [str(a["href"])[1:] for tag, a in elements.found if tag == "a"]
    assert set(targets) <= set(ids)
    sections = [a["id"] for tag, a in elements.found if tag == "section"]
    assert sections == [
        "summary", "costs", "sources", "vocabulary", "samples", "words", "tokens", "merges",
        "differences1", "about",
    ]  # fmt: skip


def test_nothing_is_loaded_and_no_script_but_its_own_runs(made: bytes) -> None:
    assert urls(made) == set()
    scripts = re.findall(rb"<script>(.*?)</script>", made, re.DOTALL)
    assert len(scripts) == 1
    elements = Elements(made)
    (policy,) = (a["content"] for tag, a in elements.found if "http-equiv" in a)
    digest = base64.b64encode(hashlib.sha256(scripts[0]).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in str(policy)
    assert str(policy).startswith("default-src 'none';")
    assert not [name for name in attribute_names(made) if name.startswith("on")]


def test_hostile_tokens_and_names_are_text(made: bytes) -> None:
    elements = Elements(made)
    assert not [tag for tag, _ in elements.found if tag in ("img", "b", "iframe")]
    text = made.decode()
    assert not re.search("[\x00-\x08\x0b-\x1f\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)
    assert "49" not in elements.texts["h3"]
    assert visible(HOSTILE[0]) in elements.texts["h3"]  # a card's title
    assert HOSTILE[1] in elements.texts["bdi"]  # a source
    assert '"<U+202E>evil<U+2066><U+200F>"' in elements.texts["bdi"]  # a token of one only
    assert "&lt;script&gt;alert(1)" in text


def test_figures_of_the_report_are_shown(made: bytes) -> None:
    elements = Elements(made)
    cells = elements.texts["td"]
    assert "Tokens a word (fertility)" in elements.texts["th"]
    assert any(re.fullmatch(r"\d+\.\d{3}", cell) for cell in cells)
    assert [tag for tag, _ in elements.found].count(
        "svg"
    ) == 4 + 1 + 4  # sizes, by source, vocabulary
    (data,) = (
        json.loads(text)
        for text, (_, a) in zip(
            elements.texts["script"],
            [row for row in elements.found if row[0] == "script"],
            strict=True,
        )
        if a.get("type") == "application/json"
    )
    values = data["sources"]["tokens_per_word"]["values"]
    # Three sizes and the whole of the first tokenizer, and the second.
    assert [len(own) for own in values] == [3] * 5
    assert data["first_word"] in data["words"][0]


def test_of_many_sources_the_largest_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bpe_beam.html_report.page.MOST_CELLS", 10)  # of five vocabularies
    texts = Elements(html_page(tmp_path)).texts
    assert "a<b>" in texts["bdi"]
    assert "zh" in texts["bdi"]
    assert (
        sum("The 2 largest of 3 sources; the JSON and the CSV" in note for note in texts["p"]) == 2
    )


def test_tokens_of_samples_are_those_of_the_tokenizer(made: bytes) -> None:
    text = made.decode()
    tokens = re.search(r"<dt>English.*?</dt>\s*<dd>(.*?)</dd>", text, re.DOTALL)
    assert tokens is not None
    shown = "".join(re.findall(r'<span data-t="\d+">(.*?)</span>', tokens[1]))
    assert shown.replace("&#39;", "'").startswith("The harbour's lights")


def test_the_best_value_shown_is_marked() -> None:
    figures = marked("bytes_per_token", [3.0, None, 4.0, 3.9999])
    assert [best for _, best in figures] == [False, False, True, True]  # 4.000 both, as shown
    assert not any(best for _, best in marked("tokens", [5, 5]))
    assert [best for _, best in marked("tokens", [7, 5])] == [False, True]
    assert not any(best for _, best in marked("words", [7, 5]))


def test_added_tokens_alike_are_one_row() -> None:
    few = [PartDifference(f"{ADDED_TOKEN}{n}", "special", "none") for n in range(3)]
    many = [PartDifference(f"{ADDED_TOKEN}<|reserved_{n}|>", "none", "plain") for n in range(6)]
    rows = list(costly_words._folded([PartDifference("model", "a", "b"), *few, *many]))
    assert [row[0] for row in rows] == [
        "model", *(f"added token {n}" for n in range(3)), "6 added tokens",
    ]  # fmt: skip
    assert rows[-1][3] == [f"<|reserved_{n}|>" for n in range(6)]


def test_files_replace_the_own_samples(tmp_path: Path) -> None:
    assert read_samples(Storage(), ()) is SAMPLES
    path = tmp_path / "a.txt"
    path.write_text("größe", "utf-8")
    assert read_samples(Storage(), (str(path),)) == {str(path): "größe"}


def test_a_long_text_is_cut_between_characters(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x" + "\u20ac" * 2 * MAX_SAMPLE, "utf-8")
    (text,) = read_samples(Storage(), (str(path),)).values()
    assert text == "x" + "\u20ac" * (MAX_SAMPLE - 1)


def test_files_that_are_no_texts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with pytest.raises(UsageError, match="no such file"):
        read_samples(Storage(), (str(path),))
    path.write_bytes(b"a\xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_samples(Storage(), (str(path),))


def test_tokens_of_a_text() -> None:
    vocabulary, _ = tokenizers()
    text = SAMPLES["German"]
    assert tokens_of(vocabulary, text) == vocabulary.tokenizer.encode(text)
    lacking = Vocabulary(Tokenizer.from_learned(["a"], []))
    assert tokens_of(lacking, "b") is None

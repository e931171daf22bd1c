"""The HTML report in a real browser: its looks, its keys, its searches, and who can use it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from browsers import axe_script, chromium, expect
from html_pages import HOSTILE, SIZES, html_page, tokenizers

from bpe_beam.evaluation.metrics import Tally
from bpe_beam.evaluation.report import VERSION, Report, report_of
from bpe_beam.evaluation.vocabulary import Vocabulary
from bpe_beam.html_report.figures import Evaluated, visible
from bpe_beam.html_report.page import page
from bpe_beam.html_report.samples import SAMPLES
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.tokenizer import Tokenizer

pytestmark = pytest.mark.browser

MOST_BYTES = 3_000_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("page")
    file = root / "report.html"
    (root / "counts").mkdir()
    file.write_bytes(html_page(root / "counts"))
    return file


@pytest.fixture
def opened(browser: Any, made: Path) -> Iterator[Any]:
    with opening(browser, made) as shown:
        yield shown


class opening:
    """Opens a page, and refuses messages in the console and requests when it is closed."""

    def __init__(self, browser: Any, file: Path, width: int = 1280, scheme: str = "light") -> None:
        viewport = {"width": width, "height": 900}
        self.context = browser.new_context(
            viewport=viewport, color_scheme=scheme, reduced_motion="reduce"
        )
        self.file = file
        self.messages: list[str] = []
        self.requests: list[str] = []

    def __enter__(self) -> Any:
        shown = self.context.new_page()
        shown.on("console", lambda message: self.messages.append(message.text))
        shown.on("pageerror", lambda error: self.messages.append(str(error)))
        shown.on("dialog", lambda dialog: self.messages.append(dialog.message))
        shown.on("request", lambda request: self.requests.append(request.url))
        shown.goto(self.file.as_uri())
        return shown

    def __exit__(self, *error: object) -> None:
        self.context.close()
        if error[0] is None:
            assert self.messages == []
            assert self.requests == [self.file.as_uri()]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_anyone_can_use_it(browser: Any, made: Path, width: int, scheme: str) -> None:
    with opening(browser, made, width, scheme) as shown:
        shown.locator("#explorer").scroll_into_view_if_needed()
        shown.wait_for_selector("#token-table tbody tr")
        shown.locator("#forest-card").scroll_into_view_if_needed()
        shown.wait_for_selector("#forest .node")
        shown.evaluate(axe_script())
        found = shown.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        assert [(v["impact"], v["id"], v["nodes"][0]["html"]) for v in found] == []
        assert shown.evaluate("document.documentElement.scrollWidth") == width
        dark = (
            shown.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 18, 23)"
        )
        assert dark == (scheme == "dark")


def test_bars_of_a_table_have_one_scale(opened: Any) -> None:
    opened.locator("#source-table thead th").last.evaluate("e => e.append(' with a long name')")
    bars = opened.locator("#source-table .bar").evaluate_all("all => all.map(e => e.clientWidth)")
    assert len(bars) > 2
    assert len(set(bars)) == 1
    apart = opened.locator("#source-table td:has(.bar)").evaluate_all(
        "all => all.map(e => [...e.children].map(c => c.getBoundingClientRect())).map("
        "([bar, number]) => Math.max(number.left - bar.right, number.top - bar.bottom))"
    )
    assert min(apart) > 0  # no number lies on its bar, but beside it or below


def test_the_width_of_the_model_decides_the_embedding(opened: Any) -> None:
    opened.get_by_label("Width of the model").fill("4000000")
    assert opened.locator("#embedding").inner_text() == "Embedding of width 4,000,000, parameters"
    cells = opened.locator("td[data-ids]")
    sizes = [int(cell.get_attribute("data-ids")) for cell in cells.all()]
    assert tuple(sizes[:3]) == SIZES
    assert cells.all_inner_texts() == [f"{4 * size:,}.0 M" for size in sizes]
    opened.get_by_label("Width of the model").fill("")
    assert cells.all_inner_texts() == [f"{4 * size:,}.0 M" for size in sizes]


def test_the_switch_of_colours(opened: Any) -> None:
    def background() -> str:
        return str(opened.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = background()
    opened.get_by_label("Dark").check(force=True)
    assert background() != light
    opened.emulate_media(media="print")
    assert background() == "rgb(255, 255, 255)"
    opened.emulate_media(media="screen", color_scheme="dark")
    opened.get_by_label("Light").check(force=True)
    assert background() == light


def test_tokens_tell_about_themselves(opened: Any) -> None:
    first = opened.locator("[data-panel=samples] .tokens > span").first
    first.hover()
    tip = opened.locator("#tip")
    tip.wait_for()
    vocabulary, _ = tokenizers()
    ids = vocabulary.tokenizer.encode(SAMPLES["English"])
    text = tip.text_content()
    assert f"Id: {ids[0]}\n" in text
    assert f"Bytes: {vocabulary.token_bytes[ids[0]].hex(' ').upper()}" in text
    assert "Rank: " in text
    assert "Occurs: " in text
    first.focus()
    opened.keyboard.press("ArrowRight")
    expect(tip).to_contain_text(f"Id: {ids[1]}")
    opened.keyboard.press("End")
    opened.wait_for_function(
        f"document.getElementById('tip').textContent.includes('Id: {ids[-1]}')"
    )
    opened.keyboard.press("Enter")
    opened.wait_for_selector("dialog[open]")
    assert opened.locator("#token-title").text_content() == visible(
        vocabulary.token_bytes[ids[-1]].decode()
    )
    opened.keyboard.press("Escape")
    assert opened.locator("dialog[open]").count() == 0
    opened.locator(".chart [role=graphics-symbol][aria-label]").first.hover()
    expect(tip).to_contain_text("tokens")


def test_tables_sort_and_filter(opened: Any) -> None:
    table = opened.locator("#source-table")
    rows = table.locator("tbody tr")
    table.get_by_role("button", name="Words").click()
    words = [int(v) for v in rows.evaluate_all("rows => rows.map(r => r.cells[1].dataset.v)")]
    assert words == sorted(words, reverse=True)
    assert table.locator("th[aria-sort=descending]").count() == 1
    table.get_by_role("button", name="Words").click()
    words = [int(v) for v in rows.evaluate_all("rows => rows.map(r => r.cells[1].dataset.v)")]
    assert words == sorted(words)
    opened.locator("[data-filter=source-table]").fill("A<B")
    assert rows.locator("visible=true").count() == 1
    assert opened.locator("[data-count=source-table]").text_content() == "1 of 3"
    before = rows.locator(".value").first.text_content()
    opened.locator("#source-figure").select_option("words_kept_whole")
    assert rows.locator(".value").first.text_content() != before
    assert rows.locator(".value").first.text_content().endswith("%")


def test_all_tokens_can_be_searched(opened: Any) -> None:
    opened.locator("#explorer").scroll_into_view_if_needed()
    rows, found = opened.locator("#token-table tbody tr"), opened.locator("#token-page")
    rows.first.wait_for()
    opened.locator("#token-search").fill("</script>")
    expect(rows).to_have_count(1)
    assert rows.locator("button").text_content() == HOSTILE[0]
    opened.locator("#token-search").fill("#97")
    expect(found).to_contain_text(re.compile("^1 tokens"))
    assert rows.locator("td").first.text_content() == "97"
    opened.locator("#token-search").fill("")
    opened.locator("#token-kind").select_option("1")
    expect(rows).to_have_count(50)
    assert set(rows.evaluate_all("rows => rows.map(r => r.cells[4].textContent)")) == {"0"}
    opened.locator("#token-next").click()
    assert "page 2" in opened.locator("#token-page").text_content()
    opened.locator("#token-tokenizer").select_option("1")
    opened.locator("#token-kind").select_option("only")
    opened.locator("#token-search").fill("evil")
    expect(found).to_contain_text(re.compile("^1 tokens"))
    assert rows.locator("button").text_content() == "<U+202E>evil<U+2066><U+200F>"


def test_words_are_encoded_as_the_tokenizer_does(opened: Any) -> None:
    vocabulary, _ = tokenizers()
    opened.locator("#forest-card").scroll_into_view_if_needed()
    opened.wait_for_selector("#forest .node")
    for word in (" theory", "whether", " größe", "\u4f60\u597d", "aaaaaaa", " three"):
        opened.locator("#forest-word").fill(word)
        expected = [
            visible(vocabulary.token_bytes[at].decode()) if vocabulary.texts[at] else
            f"<{vocabulary.token_bytes[at].hex(' ').upper()}>"
            for at in vocabulary.tokenizer.encode(word)
        ]  # fmt: skip
        tops = opened.locator("#forest > div > ul > li > .node")
        expect(tops).to_have_text([re.compile("^" + re.escape(one)) for one in expected])
        leaves = opened.locator("#forest .node").evaluate_all(
            "nodes => nodes.filter(node => !node.nextElementSibling).length"
        )
        assert leaves == len(word.encode()), word


def test_128_thousand_tokens_are_small_and_found(browser: Any, tmp_path: Path) -> None:
    vocabulary = many_tokens(128_000)
    tally = Tally.empty(len(vocabulary))
    tally.tokens += np.random.default_rng(1).zipf(1.3, len(vocabulary)) % 10_000_000
    report, _ = report_of("many", vocabulary, [(None, tally)], (), exact=True)
    values = msgspec.to_builtins(Report(VERSION, None, [report]))
    data = page(values, [Evaluated(vocabulary, tally)], SAMPLES)
    assert len(data) < MOST_BYTES
    file = tmp_path / "many.html"
    file.write_bytes(data)
    with opening(browser, file) as shown:
        shown.locator("#explorer").scroll_into_view_if_needed()
        found = shown.locator("#token-page")
        expect(found).to_contain_text("128,000 tokens")
        shown.locator("#token-search").fill("#127999")
        expect(found).to_contain_text(re.compile("^1 tokens"))


def many_tokens(size: int) -> Vocabulary:
    """Return a tokenizer of so many tokens, merged from random ones."""
    made = random.Random(1)
    tokens = [byte_level.to_chars(bytes([byte])) for byte in range(256)]
    letters = tokens[97:123]
    short, known, merges = list(letters), set(tokens), []
    while len(tokens) < size:
        pair = made.choice(short), made.choice(letters)
        token = "".join(pair)
        if token not in known:
            known.add(token)
            merges.append(pair)
            tokens.append(token)
            if len(token) < 12:
                short.append(token)
    return Vocabulary(Tokenizer.from_learned(tokens, merges))

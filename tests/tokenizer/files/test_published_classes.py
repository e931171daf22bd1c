"""The table of classes: each setting has its effect or is refused, and each has its cells."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from published_cells import BASES, CLEAN_UP, VALUES, cells, settings_of, write

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.files.published_classes import CLASSES

WITHOUT_EFFECT = {"fill_token"}  # of which no text is made here


def test_no_model_type_has_two_classes() -> None:
    counts = Counter(one for kind in CLASSES.values() for one in kind.model_types.split())
    assert set(counts.values()) == {1}


def test_each_setting_has_cells() -> None:
    assert CLASSES.keys() == BASES.keys()
    for kind in CLASSES.values():
        assert VALUES.keys() >= set(settings_of(kind))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CLASSES)
def test_each_setting_has_its_effect(name: str, tmp_path: Path) -> None:
    """The values of a setting give several tokenizers, or one of them is refused."""
    results: dict[str, set[Any]] = {}
    folder = write(tmp_path / "base", dict(cells())[f"{name} settings without effect"])
    base = Tokenizer.from_pretrained(folder).to_json()
    for number, (cell, files) in enumerate(cells()):
        own, _, rest = cell.partition(" ")
        setting = rest.partition(" ")[0]
        if own != name or setting not in settings_of(CLASSES[name]):
            continue
        try:
            read: Any = Tokenizer.from_pretrained(write(tmp_path / str(number), files)).to_json()
        except UsageError as error:
            assert setting in str(error)
            read = "refused"
        results.setdefault(setting, {base}).add(read)
    unchanged = {setting for setting, values in results.items() if len(values) == 1}
    # Of texts in the tokens of BPE, spaces before punctuation are kept.
    kept = {CLEAN_UP} - CLASSES[name].settings.keys()
    assert unchanged <= WITHOUT_EFFECT | kept

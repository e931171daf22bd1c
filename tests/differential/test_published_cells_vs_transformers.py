"""Each setting of each class that reads published folders, against the installed `transformers`."""

from __future__ import annotations

import inspect
import os
import random
import re
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from published_cells import (
    AGREED,
    BASES,
    DIFFERENT,
    NO_EFFECT,
    REFUSED,
    TEXTS,
    cells,
    settings_of,
    write,
)
from sentencepiece_models import BPE, BYTES, SPECIAL, made_model

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.files.published_classes import CLASSES
from bpe_beam.tokenizer.files.sentencepiece_file import merges_of, read_pieces

pytestmark = pytest.mark.transformers


@pytest.fixture(scope="module", autouse=True)
def offline() -> None:
    """Nothing is asked of the hub; before `transformers` is imported."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="critical")


def version() -> str:
    import transformers

    return str(transformers.__version__[0])


def opened(folder: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def matches(name: str, patterns: Collection[str]) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def differences(ours: Tokenizer, read: Callable[[], Any]) -> list[Any]:
    """Return what differs for some texts: ids, and decoded texts."""
    found: list[Any] = []
    try:
        theirs = read()
        for text in TEXTS:
            for around in (True, False):
                ids = ours.encode(text, allowed_special="all", add_special_tokens=around)
                other = theirs(text, add_special_tokens=around)["input_ids"]
                if ids != other:
                    found.append((text, [theirs.convert_ids_to_tokens(i) for i in (ids, other)]))
            # Older versions of tokenizers decode normalized tokens as they are listed.
            if version() == "4" and any(token.normalized for token in ours.spec.added_tokens):
                continue
            for skip in (True, False):
                decoded = theirs.decode(ids, skip_special_tokens=skip)
                if decoded != (here := ours.decode(ids, skip_special_tokens=skip)):
                    found.append((text, "decoded", here, decoded))
    except (AttributeError, TypeError, ValueError) as error:
        found.append(error)
    return found


@pytest.mark.parametrize("name", CLASSES)
def test_each_cell(name: str, tmp_path: Path) -> None:
    wrong: dict[str, Any] = {}
    seen = 0
    for number, (cell, files) in enumerate(cells()):
        if not cell.startswith(name):
            continue
        seen += 1
        folder = write(tmp_path / str(number), files)
        try:
            ours = Tokenizer.from_pretrained(folder)
        except UsageError as error:
            if not matches(cell, REFUSED):
                wrong[cell] = error
            continue
        if matches(cell, REFUSED):
            wrong[cell] = "is read"
        found = differences(ours, partial(opened, folder))
        if bool(found) != matches(cell, DIFFERENT[version()]):
            wrong[cell] = found[:2]
    assert not wrong, "\n".join(f"{cell}: {why}" for cell, why in wrong.items())
    assert seen > 30


@pytest.mark.parametrize("name", CLASSES)
def test_each_argument_of_a_class_has_a_cell(name: str) -> None:
    import transformers

    fast = getattr(transformers, f"{name}Fast", None) or getattr(transformers, name)
    slow = getattr(fast, "slow_tokenizer_class", None)
    files = {"self", "args", "kwargs", "vocab", "merges", "vocab_file", "merges_file"}
    files |= {"tokenizer_file", "_spm_precompiled_charsmap"}
    for kind in filter(None, (fast, slow)):
        arguments = set(inspect.signature(kind.__init__).parameters) - files
        assert arguments <= {*settings_of(CLASSES[name]), *NO_EFFECT, "split_special_tokens"}


@pytest.mark.parametrize("name", CLASSES)
def test_special_tokens_may_be_plain_text(name: str, tmp_path: Path) -> None:
    """By a setting there, and here if the caller does not allow them."""
    if matches(f"{name} by itself", DIFFERENT[version()]):
        pytest.skip("this version reads the class differently")
    config = {"tokenizer_class": name, "split_special_tokens": True, **AGREED.get(name, {})}
    folder = write(tmp_path, {**BASES[name], "tokenizer_config.json": config})
    ours, theirs = Tokenizer.from_pretrained(folder), opened(folder)
    for text in TEXTS:
        ids = theirs(text, add_special_tokens=False)["input_ids"]
        assert ids == ours.encode(text), text


@pytest.mark.parametrize("name", CLASSES)
def test_a_folder_that_it_saved(name: str, tmp_path: Path) -> None:
    config = {"tokenizer_class": name}
    folder = write(tmp_path, {**BASES[name], "tokenizer_config.json": config})
    first = opened(folder)
    if version() == "4":  # 5 writes added tokens to tokenizer.json alone
        first.add_tokens(["<new>", "zz"])
    first.save_pretrained(folder)
    (tmp_path / "tokenizer.json").unlink()
    write(tmp_path, BASES[name])  # of which 5 leaves some out
    ours = Tokenizer.from_pretrained(folder)
    assert bool(differences(ours, lambda: first)) == matches(f"{name} alone", DIFFERENT[version()])


def test_merges_of_runs_and_of_equal_scores(tmp_path: Path) -> None:
    """By the fewest merges, if they are known to be right, and by all."""
    if version() == "5":
        pytest.skip("version 5 merges in the order of ids")
    rng = random.Random(7)
    least = 0
    for number in range(40):
        words = {"".join(rng.choices("▁ab", k=rng.randint(2, 5))) for _ in range(rng.randint(1, 9))}
        words |= {"▁" * length for length in range(2, rng.choice([2, 5, 9, 17]))}
        scores = {
            word: -2.0 - place * (rng.random() < 0.9) for place, word in enumerate(sorted(words))
        }
        if number % 2:
            scores |= {word: -1.0 for word in words if set(word) == {"▁"}}
        pieces = [*((word, score, 1) for word, score in scores.items())]
        pieces += [(letter, -99.0 - place, 1) for place, letter in enumerate("▁ab")]
        model = made_model([*SPECIAL, *BYTES, *pieces], BPE, trainer={35: 1}, normalizer={4: 0})
        least += merges_of(read_pieces(model, "")[0]) is not None
        config = {"tokenizer_class": "LlamaTokenizer", "legacy": False, "add_bos_token": True}
        files = {"tokenizer.model": model, "tokenizer_config.json": config}
        folder = write(tmp_path / str(number), files)
        ours, theirs = Tokenizer.from_pretrained(folder), opened(folder)
        for _ in range(30):
            text = "".join(rng.choices("  ab", k=rng.randint(1, 40)))
            assert theirs(text)["input_ids"] == ours.encode(text, add_special_tokens=True), text
    assert 5 < least < 35

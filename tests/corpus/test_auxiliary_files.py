"""The names of files that are passed over in folders and archives."""

from __future__ import annotations

import pytest

from bpe_beam.corpus.auxiliary_files import is_auxiliary

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    "path",
    ["README", "a/readme.MD", "LICENSE-MIT", "Licence.txt", "a/_b/c", ".a/c", "_SUCCESS"],
)  # fmt: skip
def test_names_that_are_passed_over(path: str) -> None:
    assert is_auxiliary(path.split("/"))


@pytest.mark.parametrize(
    "path", ["README/a", "readme.jsonl", "notice_2020.txt", "./a", "../a", "a_b", "a."]
)  # fmt: skip
def test_names_of_data(path: str) -> None:
    assert not is_auxiliary(path.split("/"))

"""Names of files that a corpus does not consist of."""

from __future__ import annotations

import pytest

from bpe_beam.corpus.auxiliary_files import is_auxiliary

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    "path",
    [
        *("README", "a/readme.MD", "README.zh-CN.md", "README_pt-br.md", "LICENSE-MIT"),
        *("Licence.txt", "LICENSE-APACHE-2.0", "LICENSE-2.0.txt", "SHA256SUMS", "md5sum.txt"),
        *("a/_b/c", ".a/c", "_SUCCESS"),
    ],
)
def test_names_that_are_passed_over(path: str) -> None:
    assert is_auxiliary(path.split("/"))


@pytest.mark.parametrize(
    "path", ["README/a", "readme.jsonl", "README.gz", "notice_2020.txt", "./a", "../a", "a_b", "a."]
)  # fmt: skip
def test_names_of_data(path: str) -> None:
    assert not is_auxiliary(path.split("/"))

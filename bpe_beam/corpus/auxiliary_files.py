"""The names of files that a corpus does not consist of: hidden files, and files about data."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = (".", "_")
"""The first characters of names that are passed over: hidden files, and files that other programs
keep with their data, such as `_SUCCESS` and `_temporary/`."""

ABOUT_DATA = "README, LICENSE, COPYING, NOTICE, CITATION"
"""The names of files about data, for messages."""

_ABOUT_DATA = (
    r"(?i)(?:readme|licen[cs]e|copying|notice|citation)"
    r"(?:[-_][a-z]+)*(?:[-_]v?[0-9]+(?:\.[0-9]+)+)?"  # LICENSE-APACHE-2.0
    r"(?:(?:\.[a-z]{2}(?:[-_][a-z]{2,4})?)?\.(?:md|txt|rst|html?|cff|bib))?"  # README.zh-CN.md
    r"|(?:md5|sha[0-9]+)sums?(?:\.txt)?"
    r"|(?:dataset_infos?|dataset_dict|state)\.json"
)
"""The names of files about data: for people, checksums, and of the package `datasets`."""


def is_auxiliary(names: Iterable[str]) -> bool:
    *folders, name = names
    hidden = any(each.startswith(HIDDEN) for each in (*folders, name) if each not in (".", ".."))
    return hidden or re.fullmatch(_ABOUT_DATA, name) is not None

"""Options that several jobs on counts folders share."""

from __future__ import annotations

from typing import Any

from bpe_beam.settings.field import MAX_INT64, option


def folder_option() -> Any:
    """Return the argument `FOLDER`."""
    return option(flag="folder", metavar="DIR", help="Folder that count wrote.")


def sources_option(what: str, **more: Any) -> Any:
    """Return the option `--source`; its names are sorted, each once."""
    return option(
        None,
        flag="--source",
        metavar="NAME",
        kind="repeat",
        help=f"Source to {what} (default: all). Repeat for more.",
        parse=lambda texts: tuple(sorted(set(texts))),
        **more,
    )


def min_count_option(what: str, **more: Any) -> Any:
    """Return the option `--min-count`."""
    return option(
        1,
        help=f"{what} words whose total count over the chosen sources is below N.",
        between=(1, MAX_INT64),
        **more,
    )

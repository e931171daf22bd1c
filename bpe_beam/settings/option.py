"""One option of a job: for the parser, the help, and the keys of YAML files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        flag: As typed, e.g. `--vocab-size`; or the bare name of a positional argument.
        metavar: What the help calls its value; empty for a switch.
        help: What it does; `%` is doubled, as argparse wants.
        kind: One value, many after one flag, one each time the flag is given, the same for
            NAME=VALUE, which may be a mapping in a file, or no value.
        required: Whether the job cannot do without it.
    """

    flag: str
    metavar: str
    help: str
    kind: Literal["one", "many", "repeat", "pairs", "switch"] = "one"
    required: bool = False

    @property
    def key(self) -> str:
        """Its name in YAML files."""
        return self.flag.lstrip("-").replace("-", "_")


def choice(names: tuple[str, ...]) -> str:
    """What the help calls a value that is one of some names."""
    return "{" + ",".join(names) + "}"

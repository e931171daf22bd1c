"""Who may import whom: the table of docs/architecture.md, held against every import there is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import bpe_beam

pytestmark = pytest.mark.quick

PACKAGE = Path(bpe_beam.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
SOURCES = sorted([*MODULES, *PACKAGE.rglob("*.hpp"), *PACKAGE.rglob("*.cpp")])

EVERYWHERE = {"_native", "errors", "json_structs", "limits", "messages", "storage"}
PLAIN = {"corpus", "counts", "evaluation", "training", "tokenizer", "shards"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": {"messages"},
    "limits": set(),
    "json_structs": set(),
    "messages": set(),
    "unused_packages": set(),
    "storage": {"errors", "json_structs", "messages"},
    "folders": {"errors", "messages", "storage"},
    "terminal": set(),
    "progress": {"messages", "terminal"},
    "corpus": EVERYWHERE | {"folders"},
    "shards": EVERYWHERE | {"corpus", "folders"},
    "tokenizer": EVERYWHERE | {"api"},  # for `Tokenizer.evaluate`, where it is called
    "counts": EVERYWHERE | {"corpus", "folders", "tokenizer"},
    "evaluation": EVERYWHERE | {"counts", "tokenizer"},
    "html_report": EVERYWHERE | {"counts", "evaluation", "tokenizer"},
    "training": EVERYWHERE | {"counts", "tokenizer"},
    "workers": EVERYWHERE | PLAIN | {"folders", "progress", "unused_packages"},
    "transforms": EVERYWHERE | PLAIN | {"folders", "progress", "workers"},
    "engines": EVERYWHERE | PLAIN | {"progress", "settings", "transforms", "workers"},
    "settings": EVERYWHERE | PLAIN | {"progress"},
    "jobs": EVERYWHERE
    | PLAIN
    | {
        "engines",
        "folders",
        "html_report",
        "progress",
        "settings",
        "terminal",
        "transforms",
        "workers",
    },
    "cli": EVERYWHERE | {"engines", "jobs", "progress", "settings", "terminal", "unused_packages"},
    "api": EVERYWHERE | PLAIN | {"engines", "jobs", "progress", "settings", "workers"},
    "__main__": {"cli"},
    "__init__": {"api", "counts", "shards", "tokenizer"},
}
BEAM_ROOMS = {"transforms", "engines"}


def imports(source: str) -> set[str]:
    """All modules that a source imports, wherever in it; `from a import b` counts as `a.b`."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import: name the module in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rooms(source: str) -> set[str]:
    """The parts of the package that a source imports."""
    parts = {name.split(".")[1] for name in imports(source) if name.startswith("bpe_beam.")}
    # The class, which the package itself has under this name, is in the tokenizer.
    return {"tokenizer" if part == "Tokenizer" else part for part in parts}


def room_of(module: Path) -> str:
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_a_module_imports_only_what_its_room_may() -> None:
    wrong = []
    for module in MODULES:
        room = room_of(module)
        extra = rooms(module.read_text("utf-8")) - MAY_IMPORT.get(room, set()) - {room}
        wrong += [f"{module.relative_to(PACKAGE)} imports {name}" for name in sorted(extra)]
    assert not wrong


def test_beam_is_known_to_the_beam_rooms_only() -> None:
    knowing = {
        room_of(module)
        for module in MODULES
        if any(name.split(".")[0] == "apache_beam" for name in imports(module.read_text("utf-8")))
    }
    assert knowing == BEAM_ROOMS


def test_a_module_holds_one_idea() -> None:
    wrong = []
    for source in SOURCES:
        if source.stem in ("utils", "util", "helpers", "misc"):
            wrong.append(f"{source.relative_to(PACKAGE)} says nothing by its name")
    assert not wrong


def test_the_table_names_every_room() -> None:
    assert {room_of(module) for module in MODULES} == MAY_IMPORT.keys()


def test_imports_are_found_wherever_they_stand() -> None:
    source = (
        "import bpe_beam.jobs.output\n"
        "from bpe_beam import Tokenizer, cli\n"
        "def f():\n"
        "    from bpe_beam.counts.artifact import MANIFEST\n"
        "    import os.path as path, apache_beam as beam\n"
    )
    assert rooms(source) == {"jobs", "tokenizer", "cli", "counts"}
    assert {"os.path", "apache_beam"} <= imports(source)
    with pytest.raises(AssertionError, match="relative"):
        imports("from . import output")

"""Imports between modules, compared with the table of rooms in docs/architecture.md."""

from __future__ import annotations

import ast
import re
import runpy
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import bpe_beam

pytestmark = pytest.mark.quick

PACKAGE = Path(bpe_beam.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
MODULES = sorted(PACKAGE.rglob("*.py"))
SOURCES = sorted([*MODULES, *PACKAGE.rglob("*.hpp"), *PACKAGE.rglob("*.cpp")])
BEAM_ROOMS = {"transforms", "engines"}


def imports(source: str) -> set[str]:
    """Return all modules that a source imports, wherever in it; `from a import b` is `a.b`."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import: name the module in full"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def rooms(source: str) -> set[str]:
    """Return the rooms that a source imports."""
    names = {name.split(".")[1] for name in imports(source) if name.startswith("bpe_beam.")}
    # The class, which the package itself has under this name, is in the tokenizer.
    return {"tokenizer" if name == "Tokenizer" else name for name in names} - {"_native"}


def room_of(module: Path) -> str:
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def table_of_rooms(page: str) -> dict[str, set[str]]:
    """Return the rooms in the order of the page's table, each with the rooms that it may import."""
    section = page.partition("\n## The rooms\n")[2].partition("\n## ")[0]
    words = {
        word: set(re.findall(r"`(\w+)`", names))
        for word, names in re.findall(r"^- \*(\w+)\*: (.*)$", section, re.MULTILINE)
    }
    table = {}
    for room, cell in re.findall(r"^\| `(\w+)` \|.*\|([^|]*)\|$", section, re.MULTILINE):
        table[room] = set(re.findall(r"`(\w+)`", cell))
        table[room] = table[room].union(*(words[word] for word in re.findall(r"\*(\w+)\*", cell)))
    return table


def imported_modules() -> dict[str, set[str]]:
    """Return the package's modules that each of them imports, by dotted names."""
    names = {}
    for path in MODULES:
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        names[".".join(parts).removesuffix(".__init__")] = path
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        graph[name] = set()
        for imported in imports(path.read_text("utf-8")) - {"bpe_beam._native"}:
            while imported and imported not in names:
                imported = imported.rpartition(".")[0]
            graph[name] |= {imported} - {name, ""}
    return graph


TABLE = table_of_rooms(PAGE.read_text("utf-8"))


def test_a_module_imports_only_what_its_room_may() -> None:
    wrong = []
    for module in MODULES:
        room = room_of(module)
        extra = rooms(module.read_text("utf-8")) - TABLE[room] - {room}
        wrong += [f"{module.relative_to(PACKAGE)} imports {name}" for name in sorted(extra)]
    assert not wrong


def test_rooms_import_only_rooms_above_them() -> None:
    above: set[str] = set()
    for room, may_import in TABLE.items():
        assert may_import <= above, f"{room} may import a room that is below it"
        above.add(room)


def test_the_drawing_shows_the_table() -> None:
    """After a change of the table: python scripts/make_room_drawing.py."""
    script = runpy.run_path(str(PAGE.parents[1] / "scripts" / "make_room_drawing.py"))
    assert script["PICTURE"].read_text("utf-8") == script["drawing"](PAGE.read_text("utf-8"))


def test_no_modules_import_each_other() -> None:
    TopologicalSorter(imported_modules()).prepare()  # raises CycleError


def test_beam_is_imported_by_the_beam_rooms_only() -> None:
    modules = {
        module.relative_to(PACKAGE)
        for module in MODULES
        if any(name.split(".")[0] == "apache_beam" for name in imports(module.read_text("utf-8")))
    }
    assert {module.parts[0] for module in modules} == BEAM_ROOMS
    assert Path("engines/run.py") not in modules


def test_a_module_holds_one_idea() -> None:
    wrong = []
    for source in SOURCES:
        if source.stem in ("utils", "util", "helpers", "misc"):
            wrong.append(f"{source.relative_to(PACKAGE)} says nothing by its name")
    assert not wrong


def test_the_table_names_every_room() -> None:
    assert {room_of(module) for module in MODULES} == TABLE.keys()


def test_imports_are_found_wherever_they_are() -> None:
    source = (
        "import bpe_beam.jobs.output\n"
        "from bpe_beam import Tokenizer, _native, cli\n"
        "def f():\n"
        "    from bpe_beam.counts.part_files import MANIFEST\n"
        "    import os.path as path, apache_beam as beam\n"
    )
    assert rooms(source) == {"jobs", "tokenizer", "cli", "counts"}
    assert {"os.path", "apache_beam"} <= imports(source)
    with pytest.raises(AssertionError, match="relative"):
        imports("from . import output")


def test_the_table_is_read() -> None:
    page = (
        "| `other` | a table | `x` |\n## The rooms\n\n- *low*: `a`, `b`\n\n"
        "| room | what | may import |\n|---|---|---|\n"
        "| `a` | one | |\n| `c` | `two` or | *low*, `d` |\n\n## More\n| `e` | | |\n"
    )
    assert table_of_rooms(page) == {"a": set(), "c": {"a", "b", "d"}}


def test_imported_modules_are_found() -> None:
    graph = imported_modules()
    assert "bpe_beam.engines.steps" in graph["bpe_beam.engines.beam"]
    assert "bpe_beam.api.train" in graph["bpe_beam"]
    assert "bpe_beam.corpus.formats" in graph["bpe_beam.settings.common"]

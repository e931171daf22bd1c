"""Public functions with two or more arguments say what they take, return and raise."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bpe_beam

pytestmark = pytest.mark.quick

PACKAGE = Path(bpe_beam.__file__).parent

RUN = ("settings", "progress")
"""The arguments of the `run` of a job, which `bpe_beam/jobs/__init__.py` documents for all jobs."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def public_functions(tree: ast.Module) -> Iterator[tuple[str, Function, str]]:
    """Yield name, node and docstring of each public function and method.

    `__init__` is documented by the docstring of its class.
    """
    for node in tree.body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            yield node.name, node, ast.get_docstring(node) or ""
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        for method in node.body:
            if not isinstance(method, Function):
                continue
            name = f"{node.name}.{method.name}"
            own = ast.get_docstring(method) or inherited(tree, node, method.name)
            if method.name == "__init__":
                yield name, method, own if "Args:" in own else ast.get_docstring(node) or ""
            elif not method.name.startswith("_"):
                yield name, method, own


def inherited(tree: ast.Module, node: ast.ClassDef, name: str) -> str:
    """The docstring of a method's first base of the same module, which `help` shows too."""
    bases = {ast.unparse(base) for base in node.bases}
    for base in tree.body:
        if isinstance(base, ast.ClassDef) and base.name in bases:
            for method in base.body:
                if isinstance(method, Function) and method.name == name:
                    return ast.get_docstring(method) or ""
            return inherited(tree, base, name)
    return ""


def arguments_of(function: Function) -> list[str]:
    """The names of a function's arguments, without `self`, `cls` and those with an underscore."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    names = [argument.arg for argument in every]
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


def returns_nothing(function: Function) -> bool:
    """Whether a function's annotation says that it returns nothing."""
    annotation = "None" if function.returns is None else ast.unparse(function.returns)
    return annotation in ("None", "NoReturn") or function.name == "__init__"


def raises(function: Function) -> bool:
    """Whether a function itself raises an error of ours, but for errors that it passes on."""
    nodes = [*function.body]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Function):
            continue
        if isinstance(node, ast.Raise) and node.exc is not None:
            named = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if ast.unparse(named) in ("UsageError", "DataError", "NotFoundError", "TextError"):
                return True
        nodes += ast.iter_child_nodes(node)
    return False


def missing_in(function: Function, text: str) -> list[str]:
    """What a docstring leaves out: sections, and arguments that `Args:` does not name."""
    # A method that another class documents, or overrides one of a library, refers to it.
    is_overload = any(ast.unparse(each) == "overload" for each in function.decorator_list)
    if text.startswith("See `") or is_overload:
        return []
    names = arguments_of(function)
    if len(names) < 2:
        return []
    missing = []
    if raises(function) and "Raises:" not in text:
        missing.append("Raises")
    if function.name == "run" and tuple(names[:2]) == RUN:
        return missing
    if "Args:" not in text:
        missing.append("Args")
    else:
        missing += [name for name in names if not re.search(rf"\b{name}(, \w+)*: ", text)]
    first = text.split(maxsplit=1)[0] if text else ""
    returned = first in ("Return", "Yield") or "Returns:" in text or "Yields:" in text
    if not returned and not returns_nothing(function):
        missing.append("Returns")
    return missing


PUBLIC = (
    "api/evaluate.py",
    "api/mix.py",
    "api/tokenize.py",
    "api/train.py",
    "corpus/formats/interface.py",
    "counts/word_counts.py",
    "jobs/__init__.py",
    "shards/__init__.py",
    "shards/dataset.py",
    "shards/token_view.py",
    "shards/formats/interface.py",
    "tokenizer/text_codec.py",
    "tokenizer/tokenizer.py",
    "training/recipe.py",
    "transforms/count_pairs.py",
    "transforms/count_words.py",
    "transforms/learn_merges.py",
    "transforms/read_documents.py",
    "transforms/tokenize.py",
    "transforms/write_tokens.py",
)
"""The modules of names that users call, and of those that a new format implements."""


def incomplete(module: str) -> list[str]:
    """The public functions of a module whose docstrings leave something out."""
    wrong = []
    for name, function, text in public_functions(ast.parse((PACKAGE / module).read_text("utf-8"))):
        missing = missing_in(function, text)
        if missing:
            wrong.append(f"{module}:{function.lineno} {name}: {', '.join(missing)}")
    return wrong


@pytest.mark.parametrize("module", PUBLIC)
def test_docstrings_are_complete(module: str) -> None:
    assert not incomplete(module)


def test_every_public_name_is_of_a_documented_module() -> None:
    documented = {f"bpe_beam.{module.removesuffix('.py').replace('/', '.')}" for module in PUBLIC}
    names = [getattr(bpe_beam, name) for name in bpe_beam.__all__ if name != "shards"]
    names += [getattr(bpe_beam.shards, name) for name in bpe_beam.shards.__all__]
    missing = {name.__module__ for name in names} - documented - {"bpe_beam.shards"}
    assert not missing


def test_the_run_of_all_jobs_is_documented_once() -> None:
    text = ast.get_docstring(ast.parse((PACKAGE / "jobs" / "__init__.py").read_text("utf-8"))) or ""
    assert all(part in text for part in (*(f"{name}: " for name in RUN), "Returns:", "Raises:"))


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("def f(a):\n  '''The a.'''", []),
        ("def f(a, b) -> int:\n  '''The sum.'''", ["Args", "Returns"]),
        ("def f(a, b) -> int:\n  '''Return it.\n\n  Args:\n    a: One.\n  '''", ["b"]),
        (
            "def f(a, b):\n  '''Add.\n\n  Args:\n    a: One.\n    b: Two.\n  '''\n"
            "  raise UsageError('no')",
            ["Raises"],
        ),
        ("def f(a, b):\n  '''Add.\n\n  Args:\n    a: One.\n    b: Two.\n  '''\n  raise", []),
        ("def run(settings, progress) -> int:\n  '''Do it.'''", []),
        ("def run(settings, progress):\n  '''Do it.'''\n  raise DataError('no')", ["Raises"]),
    ],
)
def test_what_is_missing_is_found(source: str, missing: list[str]) -> None:
    (_, function, text), *_ = public_functions(ast.parse(source))
    assert missing_in(function, text) == missing


@pytest.mark.parametrize(("documented", "missing"), [("Args: a: A. b: B.", []), ("", ["Args"])])
def test_a_method_has_the_docstring_that_it_overrides(documented: str, missing: list[str]) -> None:
    base = f"class _A:\n  def f(self, a, b) -> None:\n    '{documented}'"
    derived = "class B(_A):\n  def f(self, a, b) -> None:\n    pass"
    ((_, function, text),) = public_functions(ast.parse(f"{base}\n{derived}"))
    assert missing_in(function, text) == missing

"""YAML files of mappings: names once, and errors with the line."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bpe_beam.errors import DataError, UsageError
from bpe_beam.storage import Storage
from bpe_beam.storage.yaml_file import MAX_BYTES, pairs, read_mapping

pytestmark = pytest.mark.quick


def read(folder: Path, text: str | bytes) -> dict[str, list[str]]:
    path = folder / "f.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return {name: pairs(node, name) for name, node, _ in read_mapping(Storage(), str(path), "file")}


def test_values_are_as_typed(tmp_path: Path) -> None:
    assert read(tmp_path, "a: 010\nb: [no, 1.50]\nc: {x: 1, y: [2, 3]}\n") == {
        "a": ["010"],
        "b": ["no", "1.50"],
        "c": ["x=1", "y=2", "y=3"],
    }
    assert read(tmp_path, "") == read(tmp_path, "# nothing\n") == {}
    assert read(tmp_path, r'{"a": {"\ud83d\udc4d": 1}, "b": []}') == {"a": ["👍=1"], "b": []}
    assert read(tmp_path, "a: &x [1]\nb: *x\n") == {"a": ["1"], "b": ["1"]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "is not valid YAML, line 1: "),
        ("a: 1\nb: c: d", "is not valid YAML, line 2: "),
        (b"\xff\xfe\xff", "is not valid YAML"),
        ("a: " + "[" * 1000, "is not valid YAML"),
        ("a: &x {b: *x}", "is not valid YAML"),
        ("a: {b: []}", "a.b has no value"),
        ("just text", "must be a mapping, one `name: value` a line"),
        ("[a]: b", "line 1: each name before a colon must be a text"),
        ("a: 1\na: 2", "line 2: a is repeated"),
        ("a: {b: [{c: 1,\n c: 2}]}", "line 2: c is repeated"),
        (b"a" * (MAX_BYTES + 1), "must be a YAML file of at most 1,048,576 bytes"),
        (b"a: 1\n" + b"#" * MAX_BYTES, "must be a YAML file of at most 1,048,576 bytes"),
    ],
)
def test_what_is_wrong(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path, text)
    assert said in str(error.value)


def test_the_parser_quotes_no_secret(tmp_path: Path) -> None:
    for text in ("a: *hunter2", "a: !x!hunter2's b", "a: &hunter2 &hunter2 b"):
        with pytest.raises(
            UsageError, match=r"^file .*f\.yaml is not valid YAML, line 1: "
        ) as error:
            read(tmp_path, text)
        assert "hunter2" not in str(error.value)


def test_a_pipe_is_read_to_its_end() -> None:
    source, target = os.pipe()
    write = f"echo a: 1 >&{target}; sleep .3; echo b: 2 >&{target}"
    with subprocess.Popen(["/bin/bash", "-c", write], pass_fds=[target]):
        os.close(target)
        found = read_mapping(Storage(), f"/dev/fd/{source}", "file")
    os.close(source)
    assert [entry.name for entry in found] == ["a", "b"]


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.yaml: No such file"):
        read_mapping(Storage(), str(tmp_path / "none.yaml"), "file")


def test_a_node_that_is_named_many_times(tmp_path: Path) -> None:
    """Each line names the one before it ten times: 10^30 values."""
    lines = ["a0: &a0 [x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 31)]
    with pytest.raises(UsageError, match="must have at most 1,048,576 values"):
        read(tmp_path, "\n".join(lines))

"""`blend`: the list of shards and the file of sequences for Megatron-LM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Ran, run
from made_text import documents, write
from read_back import read_pair
from token_folders import write_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tokenizer: str) -> Path:
    """Two folders of Megatron shards, `a` of several, and one of another format."""
    folder = tmp_path_factory.mktemp("folder")
    for name, count, range_bytes in (("a", 40, "2KB"), ("b", 5, "1MB")):
        corpus = write(folder / f"{name}.jsonl", ["", *documents(count, seed=count)])
        arguments = ("--input", corpus, "--range-bytes", range_bytes, "--tokenizer", tokenizer)
        assert run("tokenize", *arguments, "--output", folder / name).code == 0
    assert run("convert", folder / "b", "--format", "flat", "--output", folder / "flat").code == 0
    return folder


def blend(folder: Path, *args: object) -> list[list[str]]:
    ran: Ran = run("blend", folder / "a", folder / "b", *args)
    assert (ran.code, ran.err) == (0, "")
    return [line.split() for line in ran.out.decode().splitlines()]


def test_all_shards_in_order(folder: Path) -> None:
    pairs = sorted((folder / "a").glob("*.bin")) + sorted((folder / "b").glob("*.bin"))
    assert len(pairs) > 3
    assert blend(folder) == [[str(path.with_suffix(""))] for path in pairs]


def test_a_folder_has_its_share_of_the_weights(folder: Path) -> None:
    rows = blend(folder, "--weights", "3,1")
    shares = {prefix: float(share) for share, prefix in rows}
    of_a = {
        Path(prefix): share for prefix, share in shares.items() if Path(prefix).parent.name == "a"
    }
    assert sum(of_a.values()) == pytest.approx(0.75)
    assert sum(shares.values()) == pytest.approx(1)
    sizes = {prefix: sum(map(len, read_pair(prefix))) for prefix in of_a}
    for prefix, share in of_a.items():
        assert share == pytest.approx(0.75 * sizes[prefix] / sum(sizes.values()))


def test_a_folder_of_weight_0_is_left_out(folder: Path, tmp_path: Path) -> None:
    sequences, alone = tmp_path / "s.json", run("blend", folder / "a", "--weights", 3)
    rows = blend(folder, "--weights", "0.5,0", "--sequences", sequences)
    assert rows == [line.split() for line in alone.out.decode().splitlines()]
    assert list(json.loads(sequences.read_bytes())) == [prefix for _, prefix in rows]


def test_shards_of_other_tokens_are_not_blended(
    folder: Path, tmp_path: Path, tokenizer: str
) -> None:
    corpus = write(tmp_path / "c.jsonl", documents(9, seed=1))
    large = tmp_path / "large.json"
    spec = json.loads(Path(tokenizer).read_bytes())
    for token_id in range(len(spec["model"]["vocab"]), 65_510):
        spec["model"]["vocab"][f"t{token_id}"] = token_id
    large.write_text(json.dumps(spec))
    made = {}
    for name, path, extra in (
        ("framed", tokenizer, ("--append", "<|end|>")),
        ("large", large, ()),
        ("wide", large, ("--format", "megatron_preprocess_data")),
    ):
        made[name] = tmp_path / name
        arguments = ("--input", corpus, "--tokenizer", path, *extra)
        assert run("tokenize", *arguments, "--output", made[name]).code == 0
    for one, other, names in (
        (folder / "a", made["large"], ["tokenizer", "vocab_size"]),
        (folder / "a", made["framed"], ["append"]),
        (made["large"], made["wide"], ["bytes_of_an_id"]),
    ):
        ran = run("blend", one, other)
        assert (ran.code, ran.out) == (2, b"")
        problem, *rows, remedy = ran.message.splitlines()
        assert problem.endswith("these shards cannot be blended; what differs:")
        assert [row.split(":")[0].strip() for row in rows] == names
        assert remedy.startswith("Tokenize with the same settings")
        assert run("blend", one, other, "--weights", "1,0").code == 0
    assert "  bytes_of_an_id: 2 in" in rows[0]


def test_the_file_of_sequences_has_the_numbers_of_the_index(folder: Path, tmp_path: Path) -> None:
    rows = blend(folder, "--sequences", tmp_path / "s.json")
    found = json.loads((tmp_path / "s.json").read_bytes())
    assert list(found) == [prefix for (prefix,) in rows]
    for prefix, numbers in found.items():
        header = Path(f"{prefix}.idx").read_bytes()[18:34]
        assert numbers == [
            int.from_bytes(header[:8], "little"),
            int.from_bytes(header[8:], "little"),
        ]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("a", "flat"), "DIR must be folders of Megatron shards, got flat in"),
        (("a", "b", "--weights", "1"), "--weights must be one for each folder, 2, got 1"),
        (("a", "b", "--weights", "0,0.0"), "--weights must not all be 0"),
        (("a", "b", "--weights", "1,x"), "--weights must be decimal numbers such as 0.3"),
    ],
)
def test_what_cannot_be_blended(folder: Path, args: tuple[str, ...], said: str) -> None:
    folders = [folder / each if len(each) < 5 and each.isalpha() else each for each in args]
    ran = run("blend", *folders)
    assert ran.code == 2
    assert said in ran.message


def test_a_folder_without_tokens_has_no_weight(folder: Path, tmp_path: Path) -> None:
    empty = write_folder(tmp_path / "empty", "megatron", [])
    assert run("blend", folder / "b", empty).code == 0
    ran = run("blend", folder / "b", empty, "--weights", "1,1")
    assert ran.code == 2
    assert "DIR must have tokens to have a weight" in ran.message


def test_a_path_with_a_space(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a b").symlink_to(folder / "b")
    ran = run("blend", tmp_path / "a b")
    assert ran.code == 2
    assert "must have no spaces" in ran.message

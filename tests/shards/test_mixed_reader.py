"""`shards.open` with a mixture: what `mix` writes, in its order, and nothing written."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from made_text import documents
from read_back import tree

import bpe_beam
from bpe_beam.errors import DataError, UsageError
from bpe_beam.shards.block_cache import BlockCache


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("folders")
    tokenizer = bpe_beam.train(documents(9, seed=1), vocab_size=280, special_tokens=["</s>"])
    made = {}
    for seed, (name, format_name) in enumerate(
        {"web": "parquet", "code": "megatron", "math": "arrow"}.items()
    ):
        corpus = folder / f"{name}.txt"
        corpus.write_text("".join(f"{text}\n" for text in (*documents(30, seed=seed), "")))
        made[name] = folder / f"tokens-{name}"
        bpe_beam.tokenize(
            corpus, tokenizer=tokenizer, output=made[name], format=format_name, append="</s>",
            range_bytes=1500,
        )  # fmt: skip
    return made


MIXTURES = {
    "shares": {"tokens": 2000, "share": {"web": 0.5, "code": 0.4, "math": 0.1}},
    "epochs": {"tokens_of": {"web": 3000, "math": "9k"}, "max_epochs": 9, "seed": 4},
    "a stage": {"tokens": 900, "share": {"web": 1, "code": 2}, "skip_tokens": 400},
    "duplicates": {"tokens_of": {"web": 500}, "duplicates": "drop"},
}


@pytest.mark.parametrize("name", MIXTURES)
def test_equals_what_mix_writes(folders: dict[str, Path], tmp_path: Path, name: str) -> None:
    before = {each: tree(folder) for each, folder in folders.items()}
    data = bpe_beam.shards.open(folders, mixture=MIXTURES[name])
    bpe_beam.mix(folders, output=tmp_path / "out", format="parquet", **MIXTURES[name])
    written = bpe_beam.shards.open(tmp_path / "out")
    assert len(data) == len(written) > 5
    assert data.token_count == written.token_count
    for at in range(len(data)):
        assert data[at].tolist() == written[at].tolist()
        assert data.labels(at)["source"] == written.labels(at)["source"]
    assert [ids.tolist() for ids in data] == [ids.tolist() for ids in written]
    assert {each: tree(folder) for each, folder in folders.items()} == before
    sequences, same = data.sequences(50), written.sequences(50)
    assert np.array_equal(np.stack([*sequences]), np.stack([*same]))
    assert sequences.document_starts(3).tolist() == same.document_starts(3).tolist()
    copy = pickle.loads(pickle.dumps(data.shuffled(3)))
    assert [ids.tolist() for ids in copy] == [ids.tolist() for ids in written.shuffled(3)]


def test_a_file_and_positions_to_resume(folders: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "mixture.yaml"
    file.write_text("tokens: 500\nshare:\n  web: 1\n  code: 1\n")
    data = bpe_beam.shards.open(folders, mixture=file)
    batches = data.batches(3)
    next(batches)
    state = batches.state_dict()
    rest = [[ids.tolist() for ids in batch] for batch in batches]
    again = bpe_beam.shards.open(folders, mixture=file).batches(3)
    again.load_state_dict(state)
    assert [[ids.tolist() for ids in batch] for batch in again] == rest
    file.write_text("tokens: 400\nshare:\n  web: 1\n  code: 1\n")
    other = bpe_beam.shards.open(folders, mixture=file).batches(3)
    with pytest.raises(UsageError):
        other.load_state_dict(state)


def test_sources_are_named_after_folders(folders: dict[str, Path]) -> None:
    several = [folders["web"], folders["code"]]
    data = bpe_beam.shards.open(several, mixture={"tokens_of": {"tokens-web": 400}})
    assert {data.labels(at)["source"] for at in range(len(data))} == {"tokens-web"}
    with pytest.raises(UsageError, match="the sources are tokens-code, tokens-web"):
        bpe_beam.shards.open(several, mixture={"tokens_of": {"web": 400}})
    with pytest.raises(UsageError, match="tokens-web: 4,000,000 tokens; it has"):
        bpe_beam.shards.open(several, mixture={"tokens_of": {"tokens-web": "4M"}})
    with pytest.raises(DataError, match="math: a document has no id, or the id of another one"):
        bpe_beam.shards.open(folders, mixture={"tokens_of": {"math": 40}, "identity": "id"})


def test_folders_of_one_name_are_two_sources(folders: dict[str, Path], tmp_path: Path) -> None:
    """As in the command: their names are the whole paths."""
    several = []
    for name in ("web", "code"):
        several.append(tmp_path / name / "tokens")
        several[-1].parent.mkdir()
        several[-1].symlink_to(folders[name])
    tokens_of = {str(several[0]): 700, str(several[1]): 300}
    data = bpe_beam.shards.open(several, mixture={"tokens_of": tokens_of})
    bpe_beam.mix(several, output=tmp_path / "out", format="parquet", tokens_of=tokens_of)
    written = bpe_beam.shards.open(tmp_path / "out")
    assert [ids.tolist() for ids in data] == [ids.tolist() for ids in written]
    sources = [data.labels(at)["source"] for at in range(len(data))]
    assert sources == [written.labels(at)["source"] for at in range(len(data))]
    assert {*sources} == {*tokens_of}
    with pytest.raises(UsageError, match="must name sources of the input, got 'tokens'"):
        bpe_beam.shards.open(several, mixture={"tokens_of": {"tokens": 400}})


def test_folders_of_a_source_and_globs(folders: dict[str, Path], tmp_path: Path) -> None:
    mixture = {"tokens_of": {"all": 900}}
    bpe_beam.mix({"all": [*folders.values()]}, output=tmp_path / "out", **mixture)
    written = [ids.tolist() for ids in bpe_beam.shards.open(tmp_path / "out")]
    for several in ([*folders.values()], f"{folders['web'].parent}/tokens-*"):
        data = bpe_beam.shards.open({"all": several}, mixture=mixture)
        assert [ids.tolist() for ids in data] == written
    with pytest.raises(UsageError, match="named twice"):
        bpe_beam.shards.open([folders["web"], folders["web"]], mixture=mixture)


def test_the_folders_share_the_memory(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = []
    create = BlockCache.__init__

    def recorded(cache: BlockCache, limit: int) -> None:
        limits.append(limit)
        create(cache, limit)

    monkeypatch.setattr(BlockCache, "__init__", recorded)
    bpe_beam.shards.open(folders, mixture=MIXTURES["shares"], memory=30 << 20)
    assert limits == [10 << 20] * 3


@pytest.mark.parametrize(
    ("mixture", "error", "said"),
    [
        ({"tokens": 0}, UsageError, "tokens must be at least 1, got 0"),
        ({"tokens": [1, 2]}, UsageError, "tokens must be one value, got 2"),
        ({"tokens": float("nan")}, UsageError, "got 'NaN'"),
        ({"tokens_of": {"web": 0}}, UsageError, "must be numbers above 0, got 0 for web"),
        ({"tokens": 1, "skip_tokens": 1}, DataError, "no document with tokens begins in"),
    ],
)
def test_wrong_options(
    folders: dict[str, Path], mixture: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        bpe_beam.shards.open({"web": folders["web"]}, mixture=mixture)


def test_names_of_sources(folders: dict[str, Path], tmp_path: Path) -> None:
    named = {"org/web": folders["web"], "网": folders["code"]}
    mixture = {"tokens_of": {"org/web": 300, "网": 200}}
    bpe_beam.mix(named, output=tmp_path / "out", format="parquet", **mixture)
    written = bpe_beam.shards.open(tmp_path / "out")
    data = bpe_beam.shards.open(named, mixture=mixture)
    sources = [written.labels(at)["source"] for at in range(len(written))]
    assert sources == [data.labels(at)["source"] for at in range(len(data))]
    assert {*sources} == {"org/web", "网"}
    for name in ("a=b", ""):
        said = f"must have names of sources without =, got '{name}'"
        with pytest.raises(UsageError, match=said):
            bpe_beam.mix({name: folders["web"]}, output=tmp_path / "no", tokens=9)
        with pytest.raises(UsageError, match=said):
            bpe_beam.shards.open({name: folders["web"]}, mixture={"tokens": 9})


def test_a_mixture_has_a_folder() -> None:
    with pytest.raises(UsageError, match="url must have a folder"):
        bpe_beam.shards.open({"web": []}, mixture={"tokens": 1})

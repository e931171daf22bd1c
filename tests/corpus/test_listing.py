"""Which files a folder or a glob means, whatever characters their names hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe_beam.corpus.split_planning import make_plan
from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage

pytestmark = pytest.mark.quick

STORAGE = Storage()
ODD = "a[1] *?"


def _corpus(root: Path) -> Path:
    for name in (
        "a.jsonl", "deep/er/b.txt", "_SUCCESS", ".hidden", "deep/_temporary/c.txt",
        "deep/.git/d.txt",
    ):  # fmt: skip
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    return root


def _names(*inputs: str, **settings: Any) -> list[str]:
    return [file.name for file in make_plan(STORAGE, list(inputs), **settings).files]


@pytest.mark.parametrize("folder", ["plain", ODD])
@pytest.mark.parametrize("ending", ["", "/"])
def test_a_folder_means_its_files(tmp_path: Path, folder: str, ending: str) -> None:
    root = _corpus(tmp_path / folder)
    assert _names(f"{root}{ending}") == ["a.jsonl", "deep/er/b.txt"]


@pytest.mark.parametrize("folder", ["plain", ODD])
def test_a_relative_folder_means_its_files(
    tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(_corpus(tmp_path / folder))
    for name in (".", "./", f"../{folder}", "deep/.."):
        assert _names(name) == ["a.jsonl", "deep/er/b.txt"], name
    assert _names("deep") == ["b.txt"]


def test_a_relative_glob_in_a_folder_with_the_characters_of_globs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(_corpus(tmp_path / ODD))
    assert _names("*.jsonl") == ["a.jsonl"]
    assert _names("deep/**/b.txt") == ["b.txt"]


def test_an_excluded_folder_leaves_out_its_files(tmp_path: Path) -> None:
    root = _corpus(tmp_path / "corpus")
    assert _names(str(root), exclude=[f"{root}/deep"]) == ["a.jsonl"]


@pytest.mark.parametrize("name", ["d[1]", "d?", "d*"])
@pytest.mark.parametrize("protocol", ["", "memory://"])
def test_an_exact_name_wins_over_a_glob(
    tmp_path: Path, name: str, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    start = f"{protocol}{tmp_path}/{name}" if protocol else name
    for path in (f"{start}/a.txt", f"{start}/b[1].txt", f"{start[: -len(name)]}d1"):
        STORAGE.make_folder(path.rpartition("/")[0] or ".")
        STORAGE.write_bytes(path, b"x\n")
    folder = ["a.txt", "b[1].txt"]
    for inputs in ((start,), (f"{start}/",), (f"{start}/*",), (f"{start}/a*", f"{start}/b*")):
        assert _names(*inputs) == folder, inputs
    assert _names(f"{start}/b[1].txt") == ["b[1].txt"]
    every = f"{start[: -len(name)]}**/*"
    for exclude in (start, f"{start}/", f"{start}/*"):
        assert _names(every, exclude=[exclude]) == ["d1"], exclude
    # A glob with a slash at its end means folders, and one without means files.
    assert _names(f"{start[: -len(name)]}[d]*/") == folder
    assert _names(f"{start[: -len(name)]}[d]*") == ["d1"]
    assert _names(every, exclude=[f"{start[: -len(name)]}[d]*/"]) == ["d1"]


class TestLinks:
    """Links to files and folders, and links that lead nowhere."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = tmp_path / "d"
        for name in ("d/own.txt", "real/x.txt", "real/deep/y.txt"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("x\n")
        return root

    @pytest.mark.parametrize("pattern", ["", "/**/*", "/**/*.txt"])
    def test_linked_folders_are_followed_and_circles_end(self, root: Path, pattern: str) -> None:
        (root / "linked").symlink_to("../real")
        (root / "again").symlink_to("../real")
        (root.parent / "real" / "up").symlink_to("..")
        plan = make_plan(STORAGE, [f"{root}{pattern}"])
        names = [file.name for file in plan.files]
        assert names == ["again/deep/y.txt", "again/x.txt", "own.txt"]
        assert [link.removeprefix(f"{root}/").partition(" (")[0] for link in plan.links] == [
            "again/up",
            "linked",
        ]

    def test_links_to_nothing_are_named(self, root: Path) -> None:
        (root / "dangling.txt").symlink_to("nowhere")
        (root / "loop.txt").symlink_to("loop.txt")
        reasons = (
            f"{root}/dangling.txt (a link to nowhere: No such file or directory)",
            f"{root}/loop.txt (a link to loop.txt: Too many levels of symbolic links)",
        )
        for pattern in ("", "/*", "/**/*"):
            plan = make_plan(STORAGE, [f"{root}{pattern}"])
            assert ([file.name for file in plan.files], plan.links) == (["own.txt"], reasons)
        (root / "own.txt").unlink()
        for pattern in ("", "/*", "/**/*", "/dangling.txt", "/loop.txt", "/[dl]*.txt"):
            with pytest.raises(UsageError, match=r"only links.*\(a link to "):
                make_plan(STORAGE, [f"{root}{pattern}"])

    def test_a_file_and_links_to_it_are_one_input(self, root: Path) -> None:
        (root / "a.txt").symlink_to("own.txt")
        (root / "z.txt").symlink_to("../real/x.txt")
        (root / "zz.txt").symlink_to("z.txt")
        plan = make_plan(STORAGE, [str(root)])
        assert [file.name for file in plan.files] == ["own.txt", "z.txt"]
        assert plan.duplicates == (
            f"{root}/a.txt (a link to own.txt)",
            f"{root}/zz.txt (a link to z.txt)",
        )

    def test_an_excluded_file_is_known_by_its_real_name(self, root: Path) -> None:
        real = root.parent / "real"
        (root / "linked").symlink_to("../real")
        (root / "z.txt").symlink_to("../real/x.txt")
        assert _names(str(root), exclude=[f"{real}/x.txt"]) == ["linked/deep/y.txt", "own.txt"]
        assert _names(str(root), exclude=[str(real)]) == ["own.txt"]
        assert _names(str(real), exclude=[f"{root}/linked/x.txt"]) == ["y.txt"]
        # The name of a link leaves out the link, not the file.
        assert _names(f"{root}/*.txt", exclude=[f"{root}/z.txt"]) == ["own.txt"]
        assert _names(f"{real}/x.txt", exclude=[f"{root}/z.txt"]) == ["x.txt"]


def test_what_a_job_writes_is_no_input(tmp_path: Path) -> None:
    root = _corpus(tmp_path / "d")
    (root / "tokens" / "work").mkdir(parents=True)
    for name in ("tokens/job.txt", "tokens/work/a.txt", "tokens-old.txt", "report.txt"):
        (root / name).write_text("x\n")
    (tmp_path / "way").symlink_to(root)
    outputs = [str(tmp_path / "way" / "tokens"), str(root / "report.txt")]
    for start in (str(root), f"{root}/**/*.*", f"{tmp_path}/way"):
        names = _names(start, outputs=outputs, exclude=[f"{root}/**/_*/*"])
        assert names == ["a.jsonl", "deep/er/b.txt", "tokens-old.txt"]
    with pytest.raises(UsageError, match=r"no input files: 2 are in .*tokens, the output"):
        make_plan(STORAGE, [f"{root}/tokens"], outputs=outputs)


@pytest.mark.parametrize("mark", ["__job", "__manifest"])
@pytest.mark.parametrize("store", ["local", "memory"])
def test_folders_that_other_jobs_wrote_are_no_input(tmp_path: Path, mark: str, store: str) -> None:
    root = str(tmp_path) if store == "local" else f"memory://jobs/{mark}"
    for name in ("a.txt", "b/c.txt", f"tok/{mark}", "tok/merges.txt", "tok/train/a.txt"):
        if store == "local":
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        STORAGE.write_bytes(f"{root}/{name}", b"x\n")
    for pattern in (root, f"{root}/", f"{root}/**/*", f"{root}/**"):
        plan = make_plan(STORAGE, [pattern])
        assert [file.name for file in plan.files] == ["a.txt", "b/c.txt"], pattern
        assert plan.passed_over == (f"{root}/tok/",)
    if store == "local":  # globs that mean no mark
        assert _names(f"{root}/*/*.txt") == ["c.txt"]
        with pytest.raises(UsageError, match=r"are in folders that jobs wrote: .*/tok/"):
            make_plan(STORAGE, [f"{root}/*/merges.txt"])
    assert _names(f"{root}/tok/*.txt") == ["merges.txt"]
    assert _names(f"{root}/tok/train") == ["a.txt"]
    plan = make_plan(STORAGE, [root], outputs=[f"{root}/tok"])
    assert (len(plan.files), plan.passed_over) == (2, ())


def test_a_folder_without_files_to_read(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(UsageError, match=r"is a folder without files to read.*begin with \. or _"):
        make_plan(STORAGE, [str(tmp_path)])


@pytest.mark.parametrize(
    "data",
    [
        '[{"text": "a"}]',
        '[\n {"text": "a"}]',
        "\ufeff[ {}]",
        '["a", "b"]',
        '{\n  "text": "a"}',
        "{\r\n}",
    ],
)
def test_a_json_file_that_is_not_json_lines(tmp_path: Path, data: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(data, encoding="utf-8", newline="")
    with pytest.raises(UsageError, match=r"is an array, or an object over several lines.*jq -c"):
        make_plan(STORAGE, [str(path)])
    assert _names(str(path), input_format="text") == ["a.json"]


@pytest.mark.parametrize("data", ["", "\n", "{}", '{"text": "a"}\n', "[1, 2]\n", "  {} \n"])
def test_json_lines_may_begin_with_anything_else(tmp_path: Path, data: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(data)
    assert _names(str(path)) == ["a.jsonl"]


def test_files_about_the_data_are_passed_over(tmp_path: Path) -> None:
    root = _corpus(tmp_path)
    about = ["README", "readme.md", "README_zh.md", "LICENSE", "LICENSE-MIT", "licence.txt"]
    about += ["COPYING", "NOTICE.txt", "CITATION.cff", "deep/README.rst", "dataset_info.json"]
    data = [
        "readme.jsonl",
        "license.parquet.txt",
        "notice_2020.txt",
        "README.zst",
        "statement.json",
    ]
    for name in (*about, *data):
        (root / name).write_text("x\n")
    plan = make_plan(STORAGE, [str(root)])
    assert [file.name for file in plan.files] == sorted(["a.jsonl", "deep/er/b.txt", *data])
    others = ["_SUCCESS", "deep/_temporary/c.txt"]
    assert plan.passed_over == tuple(sorted(f"{root}/{name}" for name in (*about, *others)))
    named = make_plan(STORAGE, [str(root), f"{root}/README", f"{root}/*.cff"])
    assert {"README", "CITATION.cff"} <= {file.name for file in named.files}
    assert f"{root}/README" not in named.passed_over


def test_a_folder_of_files_about_data_alone(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("x\n")
    with pytest.raises(UsageError, match=r"files named README, LICENSE, .* are left out"):
        make_plan(STORAGE, [str(tmp_path)])

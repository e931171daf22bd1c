"""The effect of each option about sources, and of the jobs on counts folders.

Cases for `test_options.py`: each takes its ground and the job.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from command_line import Ran, run, with_options
from made_text import write
from read_back import tree

BY_NAME = ("--source", "a=a.*", "--source", "b=b*")


def _manifest(ground: Any, job: str) -> Any:
    folder = ground.own / "out" / ("counts" if job == "train" else "")
    return json.loads((folder / "__manifest").read_bytes())


def _names(manifest: Any) -> set[str]:
    if "sources" in manifest:
        return set(manifest["sources"])
    return {name for shard in manifest["shards"] for name in shard["sources"]}


def sources_by_name(ground: Any, job: str) -> None:
    """Each source has the words of its files; the rest is of the source other."""
    arguments = ("--input", ground.shared / "b.txt", *BY_NAME)
    assert ground.run(job, *arguments).code == 0
    assert _names(_manifest(ground, job)) == {"a", "b"}
    ran = ground.run(job, *BY_NAME, "--source-field", "lang", out="never")
    assert ran.code == 2
    assert "--source-field and --source exclude each other" in ran.message


def sources_by_field(ground: Any, job: str) -> None:
    """A field's values are the sources; a document without it is of the source other."""
    rows = [{"text": "one two", "lang": "en"}, {"text": "drei", "lang": "de"}, {"text": "x"}]
    path = ground.own / "rows.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    _, _, *rest = ground.base(job)
    ground.patch.setattr(type(ground), "base", lambda *_: ["--input", path, *rest])
    assert ground.run(job, "--source-field", "lang").code == 0
    assert _names(_manifest(ground, job)) == {"de", "en", "other"}


SOURCES = {"--source": sources_by_name, "--source-field": sources_by_field}


def weighted(*option: str) -> Any:
    """It changes the tokenizer; without sources it is refused."""

    def case(ground: Any, job: str) -> None:
        sources = ("--input", ground.shared / "b.txt", *BY_NAME)
        assert ground.run(job, *sources, out="plain").code == 0
        ran = ground.run(job, *sources, *option)
        assert ran.code == 0, ran.err
        names = [ground.own / out / "tokenizer.json" for out in ("plain", "out")]
        assert names[0].read_bytes() != names[1].read_bytes()
        ran = ground.run(job, *option, out="never")
        assert ran.code == 2
        assert "name the sources with --source or --source-field" in ran.message

    return case


WEIGHING = {
    "--weights": weighted("--weights", "a=0.01,b=3"),
    "--temperature": weighted("--temperature", "0"),
}


def _counts(ground: Any, name: str, texts: list[str]) -> Path:
    """Return a counts folder of a source with the name of the folder."""
    corpus = ground.shared / "corpora" / f"{name}.txt"
    if not corpus.exists():
        write(corpus, texts)
    return _copied(ground, name, "count", "--input", corpus, "--source", f"{name}=*")


def _copied(ground: Any, name: str, *job: str | Path) -> Path:
    """Return a case's own copy of a folder that a job makes once for all cases."""
    made: Path = ground.shared / "made" / name
    own: Path = ground.own / name
    if not made.exists():
        assert run(*job, "--output", made, "--quiet").code == 0
    if not own.exists():
        shutil.copytree(made, own)
    return own


def _run(ground: Any, job: str, *extra: str | Path, out: str = "out") -> Ran:
    """Run one of the jobs on counts folders with its required options, and more."""
    x = _counts(ground, "x", ["a a a b", "a c"])
    y = _counts(ground, "y", ["b b b b c"])
    both = _copied(ground, "both", "counts", "merge", x, y)
    output = ("--output", ground.own / out)
    base: dict[str, tuple[str | Path, ...]] = {
        "counts merge": (x, y, *output),
        "counts show": (both,),
        "counts filter": (both, *output, "--min-count", "2"),
    }
    return run(*job.split(), *with_options(base[job], *extra))


def _words(ran: Ran) -> list[str]:
    """Return the words of a table, quoted as they are there."""
    return [line.rpartition("  ")[2] for line in ran.out.decode().splitlines()[1:]]


def other_folders(ground: Any, job: str) -> None:
    """Another folder changes the result; one folder, or the same twice, is refused."""
    assert _run(ground, job).code == 0
    x, y = ground.own / "x", ground.own / "y"
    z = _counts(ground, "z", ["z z z"])
    output = ("--output", ground.own / "three")
    if job == "counts merge":
        assert run("counts", "merge", x, y, z, *output).code == 0
        assert tree(ground.own / "out") != tree(ground.own / "three")
        for folders, said in (([x], "two or more"), ([x, x], "is named twice"), ([], "required")):
            ran = run("counts", "merge", *folders, "--output", ground.own / "never")
            assert ran.code == 2
            assert said in ran.message
    elif job == "counts filter":
        assert run("counts", "filter", z, "--min-count", "2", *output).code == 0
        assert tree(ground.own / "out") != tree(ground.own / "three")
    else:
        assert _run(ground, job).out != run("counts", "show", z).out


def where_asked(ground: Any, job: str) -> None:
    """Two folders get the same; an input is refused, even to be overwritten."""
    assert _run(ground, job, out="one").code == 0
    assert _run(ground, job, out="two/deeper").code == 0
    assert tree(ground.own / "one") == tree(ground.own / "two/deeper")
    folder = "both" if job == "counts filter" else "x"
    ran = _run(ground, job, "--overwrite", out=folder)
    assert ran.code == 2
    assert "--output must be a folder other than those that are read" in ran.message
    assert (ground.own / folder / "__manifest").exists()


def begun_anew(ground: Any, job: str) -> None:
    """Another job's folder is refused without it."""
    assert _run(ground, job).code == 0
    before = tree(ground.own / "out")
    other: tuple[str | Path, ...] = ("--source", "x")
    if job == "counts merge":
        other = (_counts(ground, "z", ["z z z"]),)
        ran = run("counts", "merge", ground.own / "x", *other, "--output", ground.own / "out")
        again = ("counts", "merge", ground.own / "x", *other, "--output", ground.own / "out")
        assert ran.code == 2
        assert run(*again, "--overwrite").code == 0
    else:
        ran = _run(ground, job, *other)
        assert ran.code == 2
        assert _run(ground, job, *other, "--overwrite").code == 0
    assert "holds the work of another job" in ran.message
    assert tree(ground.own / "out") != before


def fewer_words(ground: Any, job: str) -> None:
    """As many words are shown."""
    assert len(_words(_run(ground, job))) == 5
    assert len(_words(_run(ground, job, "--top", "2"))) == 2
    assert _run(ground, job, "--top", "0").code == 2


def rare_words(ground: Any, job: str) -> None:
    """Words are dropped by their count in all chosen sources."""
    if job == "counts show":
        assert _words(_run(ground, job, "--min-count", "3")) == ["' b'"]
        two = _words(_run(ground, job, "--min-count", "2"))
        assert two == ["' b'", "' a'", "' c'", "'a'"]
        one = ("--min-count", "2", "--source", "x")
        assert _words(_run(ground, job, *one)) == ["' a'", "'a'"]
        return
    assert _run(ground, job, "--min-count", "3", out="three").code == 0
    ran = run("counts", "show", ground.own / "three")
    assert _words(ran) == ["' b'"]
    assert _run(ground, job, out="two").code == 0
    assert tree(ground.own / "two") != tree(ground.own / "three")


def one_source(ground: Any, job: str) -> None:
    """Only its words are counted; an unknown source is refused."""
    ran = _run(ground, job, "--source", "y")
    assert ran.code == 0
    if job == "counts filter":
        manifest = json.loads((ground.own / "out" / "__manifest").read_bytes())
        assert list(manifest["sources"]) == ["y"]
        assert manifest["documents"] == 1
        ran = run("counts", "show", ground.own / "out")
        assert _words(ran) == ["' b'"]
    else:
        assert _words(ran) == ["' b'", "' c'", "'b'"]
    ran = _run(ground, job, "--source", "no", out="never")
    assert ran.code == 2
    assert "--source must be sources of these counts (x, y), got 'no'" in ran.message


def from_a_file(ground: Any, job: str) -> None:
    """Its keys do what the options do; an unknown key is refused."""
    config = ground.own / "c.yaml"
    config.parent.mkdir(exist_ok=True)
    config.write_text(f"job: {job}\nquiet: true\n")
    ran = _run(ground, job, "--config", config)
    assert ran.code == 0
    assert ran.err == ""
    config.write_text("nonsense: 1\n")
    ran = _run(ground, job, "--config", config, out="never")
    assert ran.code == 2
    assert f"nonsense is not a setting of {job}" in ran.message


def quiet(ground: Any, job: str) -> None:
    """Nothing is on stderr."""
    assert _run(ground, job, "--quiet", out="quiet").err == ""
    loud = _run(ground, job)
    assert loud.code == 0
    assert bool(loud.err) == (job != "counts show")


def progress(ground: Any, job: str) -> None:
    """Progress is JSON lines on request."""
    shown = _run(ground, job, "--progress", "json", "--quiet", out="json").err.splitlines()
    assert {json.loads(line)["stage"] for line in shown} == {"write"}


def debugged(ground: Any, job: str) -> None:
    """A failure has a traceback."""
    _run(ground, job)
    (ground.own / "both" / "part-00003-of-00032.parquet").unlink()
    (ground.own / "x" / "part-00003-of-00032.parquet").unlink()
    assert "Traceback" not in _run(ground, job, out="one").err
    assert "Traceback" in _run(ground, job, "--debug", out="two").err


def summary(ground: Any, job: str) -> None:
    """The summary is JSON, on stdout too."""
    path = ground.own / "s.json"
    assert _run(ground, job, "--summary-file", path).code == 0
    assert json.loads(path.read_bytes())["job"] == job


def storage(ground: Any, job: str) -> None:
    """Unknown options are refused."""
    ran = _run(ground, job, "--storage-options", "[]")
    assert ran.code == 2
    assert "by protocol" in ran.message
    options = '{"memory": {"asynchronous": "x", "skip_instance_cache": true}}'
    assert _run(ground, job, "--storage-options", options, out="fine").code == 0


_COMMON = {
    "--config": from_a_file,
    "--quiet": quiet,
    "--debug": debugged,
    "--summary-file": summary,
    "--storage-options": storage,
}
_WRITING = {**_COMMON, "--progress": progress, "--output": where_asked, "--overwrite": begun_anew}

COUNTS_JOBS: dict[str, dict[str, Any]] = {
    "counts merge": {**_WRITING, "folders": other_folders},
    "counts show": {
        **_COMMON,
        "folder": other_folders,
        "--top": fewer_words,
        "--min-count": rare_words,
        "--source": one_source,
    },
    "counts filter": {
        **_WRITING,
        "folder": other_folders,
        "--min-count": rare_words,
        "--source": one_source,
    },
}

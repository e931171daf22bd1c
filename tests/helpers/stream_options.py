"""The effect of each option of the streaming job, without a runner that streams.

Cases for `test_options.py`: each takes its ground and the job.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import stream_by_hand
from command_line import run
from read_back import read_shards

END = "<|endoftext|>"
NEEDED = ("--runner", "PrismRunner", "--window-seconds", "0", "--until-idle-seconds", "0")


def _window(ground: Any, out: str = "out") -> Path:
    (window,) = (ground.own / out).glob("window-*")
    return Path(window)


def _framed(option: str, before: list[int], after: list[int]) -> Any:
    def case(ground: Any, job: str) -> None:
        ground.seen(job, out="bare")
        ground.seen(job, option, END)
        bare, framed = read_shards(_window(ground, "bare")), read_shards(_window(ground))
        assert framed == [[*before, *ids, *after] for ids in bare]

    return case


def _special_tokens(ground: Any, job: str) -> None:
    counts = []
    for value in ("none", "all", END):
        out = value.strip("<|>")
        ground.seen(job, "--allowed-special", value, out=out)
        counts.append(sum(ids.count(0) for ids in read_shards(_window(ground, out))))
    assert counts == [0, 2, 2]


def _source_names(ground: Any) -> set[str]:
    manifest = json.loads((_window(ground) / "__manifest").read_bytes())
    return {name for shard in manifest["shards"] for name in shard["sources"]}


def _sources_by_name(ground: Any, job: str) -> None:
    named = ("--source", "a=a.*", "--source", "b=b*")
    ground.seen(job, "--input", str(ground.shared / "b.txt"), *named)
    assert _source_names(ground) == {"a", "b"}


def _sources_by_field(ground: Any, job: str) -> None:
    ground.seen(job, "--source-field", "id")
    assert len(_source_names(ground)) == 40


def _finer_ranges(ground: Any, job: str) -> None:
    ground.seen(job, "--range-bytes", "2KB")
    assert len(list(_window(ground).glob("*.bin"))) > 3


def _looks(ground: Any, job: str, *extra: str) -> list[float]:
    """Return the times of a run's looks, from 0."""
    stream_by_hand.TIMES.clear()
    ground.seen(job, *extra, out="-".join(extra) or "plain")
    (times,) = stream_by_hand.TIMES
    return [time - times[0] for time in times]


def _between_looks(ground: Any, job: str) -> None:
    assert _looks(ground, job)[1] == 10
    assert _looks(ground, job, "--poll-seconds", "3")[1] == 3
    assert ground.run(job, "--poll-seconds", "0", out="never").code == 2


def _longer_windows(ground: Any, job: str) -> None:
    plain = _looks(ground, job)
    longer = _looks(ground, job, "--window-seconds", "25")
    assert len(longer) == len(plain) + 3


def _rest(ground: Any, job: str) -> None:
    plain = _looks(ground, job)
    assert _looks(ground, job, "--until-idle-seconds", "40") == [
        *plain,
        *(plain[-1] + 10 * n for n in range(1, 5)),
    ]


def _other_format(ground: Any, job: str) -> None:
    ground.seen(job, "--format", "flat")
    window = _window(ground)
    assert [*window.glob("*.document_offsets.npy")]
    assert json.loads((window / "__manifest").read_bytes())["format"] == "flat"
    assert run("verify", window).code == 0
    ran = ground.run(job)
    assert ran.code == 2
    assert '--format: "flat" there, "megatron" now' in ran.message


def _set_aside(ground: Any, job: str) -> None:
    archive = ground.own / "archive.jsonl"
    archive.write_bytes(b"PK\x03\x04 an archive")
    inputs = ("--input", str(archive))
    assert ground.run(job, *inputs, out="failed").code == 2
    ground.seen(job, *inputs, "--bad-files", "set_aside")
    assert b"archive.jsonl" in (_window(ground) / "__window").read_bytes()


STREAMING = {
    "--bad-files": _set_aside,
    "--format": _other_format,
    "--append": _framed("--append", [], [0]),
    "--prepend": _framed("--prepend", [0], []),
    "--allowed-special": _special_tokens,
    "--source": _sources_by_name,
    "--source-field": _sources_by_field,
    "--range-bytes": _finer_ranges,
    "--poll-seconds": _between_looks,
    "--window-seconds": _longer_windows,
    "--until-idle-seconds": _rest,
}

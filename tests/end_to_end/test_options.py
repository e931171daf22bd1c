"""Every option of every job has an effect that can be seen, or is refused by name.

One test walks the options that the command line declares, so that an option without a case fails.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import recording_runner
import stream_by_hand
from command_line import Ran, run, run_whole, with_options
from made_text import write
from read_back import read_shards, tree
from source_options import COUNTS_JOBS, SOURCES, WEIGHING
from stream_options import NEEDED, STREAMING

from bpe_beam import Tokenizer
from bpe_beam.engines.run import LocalWorkers, local_workers
from bpe_beam.evaluation import differences
from bpe_beam.evaluation.counted import CountedParts
from bpe_beam.jobs import quickstart, stream_tokenize, verify
from bpe_beam.jobs.doctor import machine as doctor_machine
from bpe_beam.jobs.doctor import runners as doctor_runners
from bpe_beam.settings.jobs import JOBS

END = "<|endoftext|>"
WRITERS = ("count", "train", "tokenize", "convert", "mix", "stream-tokenize", "quickstart")
READERS = ("count", "train", "tokenize")
LAUNCHES = {"quickstart": 2, "mix": 4}  # how often a job runs steps, if more than once
SEQUENCES = ("--sequence-length", "32")
LABELLED = ("--input", "{shared}/labelled", "--share", "labelled=1")


@dataclass
class Ground:
    """What the cases stand on: a corpus, what was made of it, and a folder for what they make."""

    shared: Path
    own: Path
    patch: pytest.MonkeyPatch
    plain: dict[tuple[str, ...], Any]

    def base(self, job: str) -> list[str | Path]:
        """The least that a job needs, but for its output."""
        tokenizer = ("--tokenizer", self.shared / "tok" / "tokenizer.json")
        if job == "doctor":  # whose own tests start programs
            self.patch.setattr(doctor_runners, "output_of", lambda *_: (0, ""))
            # What is free changes from one run to the next.
            self.patch.setattr(doctor_machine, "format_bytes", lambda _: "some")
        return {  # type: ignore[return-value]
            "count": ["--input", self.shared / "a.jsonl"],
            "train": ["--input", self.shared / "a.jsonl", "--vocab-size", "300"],
            "tokenize": ["--input", self.shared / "a.jsonl", *tokenizer],
            "stream-tokenize": ["--input", self.shared / "a.jsonl", *tokenizer, *NEEDED],
            "convert": [self.shared / "tokens", "--shards", "2"],
            "mix": ["--input", self.shared / "tokens", "--tokens", "400"],
            "verify": [self.shared / "tokens"],
            "blend": [self.shared / "tokens"],
            "evaluate": ["--input", self.shared / "a.jsonl", *tokenizer],
            "diff": [*[self.shared / "tok"] * 2, "--counts", self.shared / "counts"],
            "doctor": [self.shared / "tok"],
            "encode": [f"one{END}two", *tokenizer],
            "decode": ["70", "71", *tokenizer],
            "export": [
                *(self.shared / "tok", "--format", "tokenizer_json"),
                *("--output", self.own / "exported"),
            ],
            "inspect": [self.shared / "tok"],
            "plan": ["--input", self.shared / "a.jsonl"],
            "quickstart": [],
        }[job]

    def run(self, job: str, *extra: str | Path, out: str = "out") -> Ran:
        """Runs a job with its base and more options."""
        output = ("--output", self.own / out) if job in WRITERS else ()
        return run(job, *with_options([*self.base(job), *output], *extra))

    def seen(self, job: str, *extra: str | Path, out: str = "out") -> Any:
        """What a job that ends well makes, `__job` left out; or what it writes to stdout."""
        ran = self.run(job, *extra, out=out)
        assert ran.code == 0, ran.err or ran.out.decode()
        if job not in WRITERS:
            return ran.out
        return tree(self.own / out, without=("summary.json", "__job"))


Case = Callable[[Ground, str], None]


def changes(*extra: str, base: tuple[str, ...] = ()) -> Case:
    """What is made with `extra` differs from what is made without."""

    def case(ground: Ground, job: str) -> None:
        there = [option.format(shared=ground.shared) for option in base]
        key = (job, *there)
        if key not in ground.plain:
            ground.plain[key] = ground.seen(job, *there, out="without")
        more = [option.format(shared=ground.shared) for option in extra]
        assert ground.plain[key] != ground.seen(job, *there, *more)

    return case


def refused(*extra: str, said: str) -> Case:
    """Wrong settings: exit code 2 and nothing made."""

    def case(ground: Ground, job: str) -> None:
        ran = ground.run(job, *extra)
        assert ran.code == 2
        assert said in ran.message
        assert not (ground.own / "out").exists()

    return case


def output_is_where_it_was_asked_for(ground: Ground, job: str) -> None:
    """And a second folder gets the same."""
    assert ground.seen(job, out="one") == ground.seen(job, out="two/deeper")
    assert tree(ground.own / "one")


def other_input(ground: Ground, job: str) -> None:
    """One file instead of another, and both together."""
    _, _, *rest = ground.base(job)
    found: list[Any] = []
    for names in (["a.jsonl"], ["b.txt"], ["a.jsonl", "b.txt"]):
        base = ["--input", *(ground.shared / name for name in names), *rest]
        ground.patch.setattr(Ground, "base", lambda *_, base=base: base)
        found.append(ground.seen(job, out=f"out-{len(found)}"))
    assert len({repr(each) for each in found}) == 3


def left_out(ground: Ground, job: str) -> None:
    """A file that is excluded is as one that was never named."""
    other = ("--input", ground.shared / "b.txt")
    alone = ground.seen(job, out="alone")
    both = ground.seen(job, *other, out="both")
    without = ground.seen(job, *other, "--exclude", ground.shared / "b*")
    assert both != alone
    if job == "plan":
        assert b"b.txt" in both
        assert b"b.txt" not in without
    else:
        assert without == alone


def plan_in_a_file(ground: Ground, job: str) -> None:
    """The plan as JSON, in a file or on stdout."""
    plan = ground.own / "plan.json"
    assert ground.run(job, "--output", plan).code == 0
    assert ground.run(job, "--output", "-").out == plan.read_bytes()
    assert json.loads(plan.read_bytes())["files"][0]["name"] == "a.jsonl"


def finer_ranges(ground: Ground, job: str) -> None:
    """More splits: another plan; more shards."""
    for size in ("16MB", "2KB"):
        assert ground.run(job, "--range-bytes", size, out=size).code == 0
    folder = "counts" if job == "train" else ""
    plans = [
        json.loads((ground.own / size / folder / "__job").read_bytes())["settings"]["plan"]
        for size in ("16MB", "2KB")
    ]
    assert plans[0]["splits"] == 1
    assert plans[1]["splits"] > 3
    if job == "tokenize":
        assert len(list((ground.own / "2KB").glob("*.bin"))) == plans[1]["splits"]


def unusable_ids(ground: Ground, job: str) -> None:
    """The field named is read: half a surrogate pair in it makes the record a reject."""
    ran = ground.run(job, "--id-field", "half", "--max-rejects", "0")
    assert ran.code == 1
    assert "1 of 40 records" in ran.message
    assert ground.run(job, "--id-field", "id", "--max-rejects", "0", out="fine").code == 0


def allowed_rejects(ground: Ground, job: str) -> None:
    """Beyond the limit it fails, and goes on when the limit is raised."""
    bad = ("--id-field", "half")
    assert ground.run(job, *bad, "--max-rejects", "2.4%").code == 1
    assert ground.run(job, *bad, "--max-rejects", "2.5%").code == 0
    assert ground.run(job, *bad, "--max-rejects", "1", out="number").code == 0


def allowed_losses(ground: Ground, job: str) -> None:
    """Beyond the limit it fails, and goes on when the limit is raised, but not back."""
    whole = gzip.compress((ground.shared / "a.jsonl").read_bytes())
    damaged = ground.own / "damaged.jsonl.gz"
    damaged.write_bytes(whole[:-8] + bytes(8))  # a wrong checksum
    arguments = ("--input", damaged, "--max-rejects", "100%")
    assert ground.run(job, *arguments).code == 1
    ran = ground.run(job, *arguments, "--max-lost", "50")
    assert ran.code == 1
    assert "max_lost 50 is exceeded" in ran.message.replace("--max-lost", "max_lost")
    assert "damaged.jsonl.gz" in ran.message
    assert ground.run(job, *arguments, "--max-lost", "100%").code == 0
    assert ground.run(job, *arguments, "--max-lost", "1MB").code == 0
    if job != "stream-tokenize":  # a finished window stays so
        assert ground.run(job, *arguments, "--max-lost", "0%").code == 1


def summary_in_a_file(ground: Ground, job: str) -> None:
    """A file, or stdout."""
    file = ground.own / "s.json"
    ran = ground.run(job, "--summary-file", file)
    assert ran.code == 0, ran.err
    assert json.loads(file.read_bytes())["job"] == job
    both = ground.run(job, "--summary-file", "-", out="other").out
    assert both == ran.out + both[len(ran.out) :]
    assert json.loads(both[len(ran.out) :])["job"] == job


def settings_from_a_file(ground: Ground, job: str) -> None:
    """A key works as its flag does; the flag wins; an unknown key is refused with its line."""
    config = ground.own / "c.yaml"
    config.write_text(f"summary-file: {ground.own / 'from_file.json'}\n")
    assert ground.run(job, "--config", config).code == 0
    assert (ground.own / "from_file.json").exists()
    flag = ground.own / "from_flag.json"
    assert ground.run(job, "--config", config, "--summary-file", flag, out="other").code == 0
    assert flag.exists()
    config.write_text("# a comment\nsumary_file: x\n")
    ran = ground.run(job, "--config", config, out="third")
    assert ran.code == 2
    assert f"{config}, line 2: sumary_file" in ran.message
    assert "summary_file" in ran.message.partition("did you mean")[2]


def silence(ground: Ground, job: str) -> None:
    """Only warnings on stderr; jobs that only answer write nothing there in any case."""
    loud, quiet = ground.run(job, out="loud"), ground.run(job, "--quiet", out="quiet")
    assert (loud.code, quiet.code) == (0, 0)
    assert len(quiet.warnings) == len(quiet.err.splitlines())
    assert quiet.warnings == loud.warnings
    assert (loud.err != "") == (job in (*WRITERS, "verify", "evaluate", "diff"))
    assert quiet.out == loud.out


def traceback(ground: Ground, job: str) -> None:
    """Where it happened, for who wants to know."""
    wrong = ("--storage-options", "nonsense")
    plain, debug = ground.run(job, *wrong), ground.run(job, *wrong, "--debug")
    assert (plain.code, debug.code) == (2, 2)
    assert "Traceback" not in plain.err
    assert "Traceback" in debug.err
    assert debug.err.endswith(plain.err)


def options_of_storage(ground: Ground, job: str) -> None:
    """A file system that works only with its options: fsspec's folder of another file system."""
    of_dir = {"dir": {"path": str(ground.shared), "target_protocol": "file"}}
    options = ("--storage-options", json.dumps(of_dir))
    url = {
        "convert": ["dir://tokens", "--shards", "2", "--output", "dir://made-by-convert"],
        "mix": ["--input", "dir://tokens", "--tokens", "9", "--output", "dir://made-by-mix"],
        "verify": ["dir://tokens"],
        "blend": ["dir://tokens"],
        "evaluate": ["--counts", "dir://counts", "--tokenizer", "dir://tok/tokenizer.json"],
        "diff": ["dir://tok", "dir://tok"],
        "doctor": ["dir://tok"],
        "export": ["dir://tok", "--format", "tiktoken", "--output", "dir://exported"],
        "inspect": ["dir://tok"],
        "plan": ["--input", "dir://a.jsonl"],
        "encode": ["a", "--tokenizer", "dir://tok/tokenizer.json"],
        "decode": ["70", "--tokenizer", "dir://tok/tokenizer.json"],
    }
    args = url.get(job, [*ground.base(job), "--output", f"dir://made-by-{job}"])
    assert run(job, *args, *options).code == 0
    if job in WRITERS:
        assert (ground.shared / f"made-by-{job}").is_dir()
    assert run(job, *args).code != 0
    (ground.own / "options.json").write_text(json.dumps(of_dir))
    assert run(job, *args, "--storage-options", f"@{ground.own / 'options.json'}").code == 0


def chosen_runner(ground: Ground, job: str) -> None:
    """A class of the user's own, and the names of the one in process."""
    recording_runner.RAN.clear()
    name = "recording_runner.RecordingRunner"
    with_it = ground.seen(job, "--runner", name, out="with")
    assert len(recording_runner.RAN) == LAUNCHES.get(job, 1)
    assert with_it == ground.seen(job, "--runner", "DirectRunner")
    ran = ground.run(job, "--runner", "FlinkRuner", out="never")
    assert ran.code == 2
    assert "did you mean FlinkRunner?" in ran.message


def threads(ground: Ground, job: str) -> None:
    """So many threads, where there is so much to do."""
    arguments: list[int] = []
    if job == "verify":
        real = verify.verify  # type: ignore[attr-defined]

        def counting(*args: object, workers: int, **more: Any) -> Any:
            arguments.append(workers)
            return real(*args, workers=workers, **more)

        ground.patch.setattr(verify, "verify", counting)
    elif job == "diff":
        words = differences.word_differences

        def comparing(pair: Any, counted: CountedParts, **more: Any) -> Any:
            arguments.append(counted.workers)
            return words(pair, counted, **more)

        ground.patch.setattr(differences, "word_differences", comparing)
    else:

        def started(count: int, **more: bool) -> AbstractContextManager[LocalWorkers]:
            arguments.append(count)
            return local_workers(count, **more)

        ground.patch.setattr("bpe_beam.engines.run.local_workers", started)
    finely = ("--range-bytes", "2KB") if job in (*READERS, "evaluate") else ()
    for number in ("1", "3"):
        assert ground.run(job, *finely, "--workers", number, out=number).code == 0
    launches = LAUNCHES.get(job, 1)
    assert arguments == [1] * launches + [3] * launches
    assert ground.run(job, "--workers", "0", out="never").code == 2


def begin_anew(ground: Ground, job: str) -> None:
    """The work of another job is refused, and replaced when told so; other files stay."""
    other = {
        "count": ("--special-token", "x"),
        "train": ("--min-frequency", "3"),
        "tokenize": ("--append", END),
        "convert": ("--format", "flat"),
        "mix": ("--format", "flat"),
        "quickstart": (),
    }[job]
    ground.seen(job)
    if job == "quickstart":
        ground.patch.setattr(quickstart, "_sources", lambda: (str(ground.shared / "b.txt"),))
    foreign = ground.own / "out" / "mine.txt"
    foreign.write_text("mine")
    ran = ground.run(job, *other)
    assert ran.code == 2
    assert "what differs" in ran.message
    anew = ground.seen(job, *other, "--overwrite")
    assert foreign.read_text() == "mine"
    foreign.unlink()
    assert ground.seen(job, *other, out="fresh") == {
        name: data for name, data in anew.items() if name != "mine.txt"
    }


def special_tokens_are_cut(ground: Ground, job: str) -> None:
    """In `train`, from counts, they are added with a warning."""
    changes("--special-token", END)(ground, job)
    if job == "train":
        added = ground.own / "added"
        size = ("--vocab-size", "300", "--output", added)
        arguments = ("train", "--counts", ground.shared / "counts", *size)
        ran = run(*arguments, "--special-token", "<pad>", "--summary-file", "-", "--quiet")
        assert "<pad>" in ran.summary["warnings"][0]
        assert json.loads((added / "vocab.json").read_bytes())["<pad>"] == 0


def where_words_stand_first(ground: Ground, job: str) -> None:
    """Counts with places serve `first_seen`, others do not."""
    for rule in ("lowest_id", "first_seen"):
        ground.seen(job, "--tie-break", rule, out=rule)
    assert tree(ground.own / "lowest_id") != tree(ground.own / "first_seen")
    recipe = ("--tie-break", "first_seen", "--vocab-size", "300", "--output", ground.own / "tok")
    ran = run("train", "--counts", ground.own / "lowest_id", *recipe)
    assert ran.code == 2
    assert "count again with --tie-break first_seen" in ran.message
    again = ("--counts", ground.own / "first_seen", *recipe, "--overwrite")
    assert run("train", *again).code == 0


def from_counts(ground: Ground, job: str) -> None:
    """The same tokenizer, and no counts of its own; nothing that counts already decided."""
    size = ("--vocab-size", "300")
    arguments = ("train", "--counts", ground.shared / "counts", *size)
    assert run(*arguments, "--output", ground.own / "tok").code == 0
    made = tree(ground.own / "tok", without=("summary.json", "__job"))
    corpus = ground.seen(job)
    assert isinstance(corpus, dict)
    assert made == {n: d for n, d in corpus.items() if not n.startswith("counts/")}
    agreed = ("--pretokenizer", "gpt2", "--normalizer", "none", "--output", ground.own / "agreed")
    assert run(*arguments, *agreed).code == 0
    assert tree(ground.own / "agreed", without=("summary.json", "__job")) == made
    for extra in (
        ("--pretokenizer", "bert"),
        ("--normalizer", "nfc"),
        ("--text-field", "text"),
        ("--input", str(ground.shared / "a.jsonl")),
    ):
        ran = run(*arguments, *extra, "--output", ground.own / "never")
        assert ran.code == 2
        assert not (ground.own / "never").exists()


def memory_of_the_learner(ground: Ground, job: str) -> None:
    """With too little the words stay on storage; where they cannot, it is refused, and the same
    command with more goes on."""
    words = [f"{chr(97 + i % 26)}{i * i}x{chr(97 + i * 7 % 26)}yz" for i in range(5000)]
    many = write(ground.own / "many.txt", [" ".join(w.translate(_LETTERS) for w in words)])
    arguments = ("train", "--input", many, "--vocab-size", "300", "--output")
    for size, rounds, relation in (
        ("1MB", "distributed", "more than"),
        ("100MB", "local", "within"),
    ):
        summary = run_whole(*arguments, ground.own / size, "--driver-memory", size).summary
        assert summary["merge_rounds"] == rounds
        assert relation in summary["merge_rounds_because"]
        assert ("rounds" in summary) == (rounds == "distributed")
        measured = {"words_counted", "words_rewritten"}.intersection(summary["counters"])
        assert len(measured) == (2 if rounds == "distributed" else 1)
    made = [tree(ground.own / size, without=("summary.json",)) for size in ("1MB", "100MB")]
    assert made[0] == made[1]
    for name, extra, said in (
        ("order", ("--tie-break", "first_seen"), "more than driver_memory"),
        ("score", (*WORDS, "--model", "wordpiece"), "--driver-memory must be about"),
    ):
        refused = (*arguments, ground.own / name, *extra, "--driver-memory")
        ran = run(*refused, "1MB")
        assert ran.code == 2
        assert said in ran.message
        assert not (ground.own / name / "tokenizer.json").exists()
        assert not (ground.own / name / "rounds").exists()
        assert run(*refused, "100MB").code == 0
    far = ("--runner", "DataflowRunner", "--output", f"memory://{ground.own.name}/far")
    counts = ("--counts", ground.own / "100MB" / "counts", "--driver-memory", "1MB")
    ran = run("train", *counts, "--vocab-size", "300", *far)
    assert ran.code == 2
    assert "--counts must be in a bucket for Dataflow" in ran.message
    assert "more than driver_memory 1 MB" in ran.message


def learned_in_rounds(ground: Ground, job: str) -> None:
    """On the runner that was asked for, also from counts; the merges are the same."""
    arguments = ("train", "--counts", ground.shared / "counts", "--vocab-size", "300")
    runner = ("--runner", "recording_runner.RecordingRunner", "--direct_num_workers", "2")
    made = {}
    for way, ways_runs in (("auto", 0), ("local", 0), ("distributed", 1)):
        recording_runner.RAN.clear()
        more = ("--merge-rounds", way, "--output", ground.own / way)
        summary = run_whole(*arguments, *more, *runner).summary
        assert summary["merge_rounds"] == ("local" if way == "auto" else way)
        assert summary.get("jobs", 0) == ways_runs == len(recording_runner.RAN)
        made[way] = tree(ground.own / way, without=("summary.json",))
    assert made["auto"] == made["local"] == made["distributed"]
    assert summary["rounds"][0]["merges"] == summary["merges"]
    assert summary["runner"] == runner[1]
    own = ("--output", ground.own / "never")
    for refused, said in (
        (("--tie-break", "first_seen"), "first_seen needs to know"),
        (("--model", "word_level"), "has no merges"),
    ):
        ran = run(*arguments, *refused, "--merge-rounds", "distributed", *own)
        assert ran.code == 2
        assert "--merge-rounds cannot be distributed: " in ran.message
        assert said in ran.message
        assert "set --merge-rounds to local" in ran.message
    assert not (ground.own / "never").exists()


_LETTERS = str.maketrans("0123456789", "abcdefghij")


def every_model_is_another(ground: Ground, job: str) -> None:
    """Each with its files, and none with options that it has no use for."""
    made = {}
    for model in ("bpe", "wordpiece", "prefix_bpe", "word_level"):
        made[model] = ground.seen(job, *WORDS, "--model", model, out=model)
        assert isinstance(made[model], dict)
        files = {name for name in made[model] if not name.startswith("counts/")}
        listed = {"bpe": {"merges.txt"}, "word_level": set()}.get(model, {"vocab.txt"})
        listed |= {"tokenizer_config.json", "special_tokens_map.json"}
        assert files - {"rejects"} == {"tokenizer.json", "vocab.json"} | listed
    assert len({made[model]["vocab.json"] for model in made}) == 4
    for model in ("unigram", "mingram"):
        made[model] = ground.seen(job, *WORDS, "--model", model, out=model)
        files = {name for name in made[model] if not name.startswith("counts/")}
        listed = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
        assert files - {"rejects"} == listed
    assert made["unigram"]["tokenizer.json"] != made["mingram"]["tokenizer.json"]
    for model, option in (
        ("wordpiece", ("--alphabet", "seen")),
        ("prefix_bpe", ("--end-of-word-suffix", "x")),
        ("word_level", ("--tie-break", "lowest_id")),
        ("word_level", ("--limit-alphabet", "3")),
        ("unigram", ("--min-frequency", "3")),
        ("mingram", ("--seed-size", "3")),
    ):
        ran = ground.run(job, "--model", model, *option, out="never")
        assert ran.code == 2
        assert f"has no effect with the model {model}" in ran.message
        assert not (ground.own / "never").exists()


def prefixes(ground: Ground, job: str) -> None:
    """Of BPE, where there is none unless told, and of WordPiece, where there is."""
    changes("--continuing-subword-prefix", "@@", base=CHARACTERS)(ground, job)
    ground.plain.clear()
    wordpiece = ("--model", "wordpiece", *WORDS)
    seen = [
        ground.seen(job, *wordpiece, "--continuing-subword-prefix", prefix, out=f"with{i}")
        for i, prefix in enumerate(("##", "@@"))
    ]
    assert seen[0] == ground.seen(job, *wordpiece, out="by itself") != seen[1]


def unknown_tokens(ground: Ground, job: str) -> None:
    """The token is the first, in every model."""
    for model in ("bpe", "wordpiece", "prefix_bpe", "word_level"):
        assert ground.run(job, *WORDS, "--model", model, "--unk-token", "<?>", out=model).code == 0
        document = json.loads((ground.own / model / "tokenizer.json").read_bytes())
        assert document["model"]["unk_token"] == "<?>"
        assert document["model"]["vocab"]["<?>"] == 0
    for model in ("unigram", "mingram"):
        assert ground.run(job, *WORDS, "--model", model, "--unk-token", "<?>", out=model).code == 0
        document = json.loads((ground.own / model / "tokenizer.json").read_bytes())
        assert document["model"]["vocab"][document["model"]["unk_id"]][0] == "<?>"


def template(ground: Ground, job: str) -> None:
    """Only special tokens may stand in it, and the text, once."""
    specials = ("--special-token", "<a>", "--special-token", "<b>")
    assert ground.run(job, *specials, "--template", "<a> <a> $A <b>", out="framed").code == 0
    tokenizer = Tokenizer.from_file(str(ground.own / "framed" / "tokenizer.json"))
    plain = tokenizer.encode("to be")
    assert tokenizer.encode("to be", add_special_tokens=True) == [0, 0, *plain, 1]
    # With type ids as Hugging Face's templates have them.
    assert ground.run(job, *specials, "--template", "<a>:0 <a> $A:0 <b>:0", out="types").code == 0
    files = [ground.own / name / "tokenizer.json" for name in ("framed", "types")]
    assert files[0].read_bytes() == files[1].read_bytes()
    for wrong, said in (
        ("<a>", "--template must contain $A, the text, once"),
        ("<a> $A:1", "with the type id :0, got '$A:1' in '<a> $A:1'"),
        ("$A <b> $A", "--template must contain $A, the text, once"),
        ("$A <c>", "--template must consist of $A and special tokens, each alone"),
    ):
        done = ground.run(job, *specials, "--template", wrong, out="wrong")
        assert done.code == 2
        assert said in done.err


def role(flag: str) -> Case:
    """The token is special, and `transformers` knows its purpose."""

    def case(ground: Ground, job: str) -> None:
        assert ground.run(job, "--special-token", END, flag, "<x>").code == 0
        config = json.loads((ground.own / "out" / "tokenizer_config.json").read_bytes())
        assert config[flag.removeprefix("--").replace("-", "_")] == "<x>"
        assert config["additional_special_tokens"] == [END]
        tokenizer = Tokenizer.from_file(str(ground.own / "out"))
        assert tokenizer.special_tokens == {END: 0, "<x>": 1}
        if flag == "--eos-token":
            other = ground.run(job, "--special-token", END, "--special-token", "<x>")
            assert (other.code, '"<x>" there, none now' in other.message) == (2, True)

    return case


def pattern_of_a_tiktoken_file(ground: Ground, job: str) -> None:
    """Other patterns split texts into other tokens."""
    path = ground.own / "t.tiktoken"
    Tokenizer.from_file(ground.shared / "tok").save_tiktoken(path)
    corpus = ("--input", ground.shared / "a.jsonl", "--tokenizer", path)
    names = ("gpt2", "whitespace")
    runs = [run(job, *corpus, "--tiktoken-pretokenizer", name) for name in names]
    assert [ran.code for ran in runs] == [0, 0]
    assert runs[0].out != runs[1].out


def chat_template(ground: Ground, job: str) -> None:
    """It is copied, and another one is another job."""
    file = ground.own / "chat.txt"
    file.write_text("{{ messages }} é\n")
    assert ground.run(job, "--chat-template", file).code == 0
    assert (ground.own / "out" / "chat_template.jinja").read_bytes() == file.read_bytes()
    file.write_text("{{ messages }}")
    assert ground.run(job, "--chat-template", file).code == 2
    for content, said in ((b"", "a template, got"), (b"a\xff", "UTF-8, got another byte at 1")):
        file.write_bytes(content)
        ran = ground.run(job, "--chat-template", file, out="never")
        assert (ran.code, f"--chat-template must be {said}" in ran.message) == (2, True)
    ran = ground.run(job, "--chat-template", ground.own / "none", out="never")
    assert (ran.code, "none, which does not exist" in ran.message) == (2, True)


def model_max_length(ground: Ground, job: str) -> None:
    assert ground.run(job, "--model-max-length", "99").code == 0
    config = json.loads((ground.own / "out" / "tokenizer_config.json").read_bytes())
    assert config["model_max_length"] == 99


def more_merges(ground: Ground, job: str) -> None:
    """All ids stay, and the merges go on; what the tokenizer decides cannot be told otherwise."""
    old = ground.shared / "tok" / "tokenizer.json"
    arguments = ("--continue-from", old, "--vocab-size", "420")
    assert ground.run(job, *arguments).code == 0
    before, after = (
        json.loads(path.read_bytes())["model"]
        for path in (old, ground.own / "out" / "tokenizer.json")
    )
    assert list(after["vocab"].items())[:400] == list(before["vocab"].items())
    assert len(after["vocab"]) == 420
    assert after["merges"][: len(before["merges"])] == before["merges"]
    for wrong, said in (
        (("--unk-token", "x"), "--unk-token and --continue-from exclude each other"),
        (("--pretokenizer", "bert"), "with the pre-tokenizer of the words, 'bert'"),
        (("--normalizer", "nfc"), "with the normalizer of the words, 'nfc'"),
        (("--vocab-size", "399"), "--vocab-size must be at least 400"),
    ):
        ran = ground.run(job, *with_options(arguments, *wrong), out="never")
        assert ran.code == 2
        assert said in ran.message
        assert not (ground.own / "never").exists()


def with_special_tokens(ground: Ground, job: str) -> None:
    """Those of the post-processor are inserted."""
    framed = ("--special-token", "<s>", "--template", "<s> $A")
    assert ground.run("train", *framed, out="framed").code == 0
    encode = (job, "to be", "--tokenizer", ground.own / "framed" / "tokenizer.json")
    assert run(*encode, "--add-special-tokens").out.split() == [b"0", *run(*encode).out.split()]


def other_tokenizer(ground: Ground, job: str) -> None:
    """Another tokenizer gives other ids, or other text."""
    base = ground.base(job)
    first = ground.seen(job, out="first")
    base[base.index("--tokenizer") + 1] = ground.shared / "other" / "tokenizer.json"
    ground.patch.setattr(Ground, "base", lambda *_: base)
    assert ground.seen(job) != first


def exported_tokenizer(ground: Ground, job: str) -> None:
    """The file is that of the tokenizer that was asked for."""
    others = ground.base(job)[1:]
    for name in ("tok", "other"):
        assert run(job, ground.shared / name, *others).code == 0
        exported = Tokenizer.from_file(str(ground.own / "exported"))
        assert exported == Tokenizer.from_file(str(ground.shared / name))


def other_form(ground: Ground, job: str) -> None:
    """A file of another form."""
    assert ground.run(job, "--format", "tiktoken").code == 0
    lines = (ground.own / "exported").read_bytes().splitlines()
    assert len(lines) == Tokenizer.from_file(str(ground.shared / "tok")).vocab_size - 1


def written_where_it_was_asked_for(ground: Ground, job: str) -> None:
    """And the path is printed."""
    for name in ("a", "b"):
        path = str(ground.own / name)
        assert ground.seen(job, "--output", path) == f"{path}\n".encode()
        assert Path(path).is_file()


def estimate(ground: Ground, job: str) -> None:
    """Figures, and no output."""
    ran = ground.run(job, "--dry-run")
    assert ran.code == 0
    assert "the same without --dry-run" in ran.err
    assert not (ground.own / "out").exists()


def predicted(ground: Ground, job: str) -> None:
    """Stages and hours on a cluster, and no output."""
    ran = ground.run(job, "--dry-run", "--cluster", "workers=3,cores=2")
    assert ran.code == 0
    assert re.search(r"worker memory bytes +about", ran.err)
    assert not (ground.own / "out").exists()


def asked_only(ground: Ground, job: str) -> None:
    """The table, and no output."""
    ran = ground.run(job, "--dry-run")
    assert (ran.code, "tokens to" in ran.err) == (0, True)
    assert not (ground.own / "out").exists()


def mixed_folders(ground: Ground, job: str) -> None:
    """One folder instead of another; with a name the documents have another source."""
    seen = []
    for number, folder in enumerate(("tokens", "b=tokens", "tokens3")):
        name, equals, path = folder.rpartition("=")
        base = ["--input", f"{name}{equals}{ground.shared / path}", "--tokens", "400"]
        ground.patch.setattr(Ground, "base", lambda *_, base=base: base)
        seen.append(ground.seen(job, out=str(number)))
    assert len({repr(each) for each in seen}) == 3


def shares(ground: Ground, job: str) -> None:
    """Other shares give other documents; several sources need them."""
    two = ("--input", ground.shared / "tokens3")
    one, other = (
        ground.seen(job, *two, "--share", f"tokens=1,tokens3={share}", out=share)
        for share in ("1", "2")
    )
    assert one != other
    ran = ground.run(job, *two, out="never")
    assert (ran.code, "--share is missing" in ran.message) == (2, True)


def tokens_of_each(ground: Ground, job: str) -> None:
    """In place of the tokens of the mixture, with the same result."""
    same = ground.seen(job)
    ground.patch.setattr(Ground, "base", lambda *_: ["--input", ground.shared / "tokens"])
    assert ground.seen(job, "--tokens-of", "tokens=400", out="same") == same
    ran = ground.run(job, out="never")
    assert (ran.code, "are both missing" in ran.message) == (2, True)


def mixture_in_a_file(ground: Ground, job: str) -> None:
    """A file sets the options of a mixture."""
    file = ground.own / "mixture.yaml"
    file.write_text("tokens: 300\nseed: 3\n")
    ground.patch.setattr(Ground, "base", lambda *_: ["--input", ground.shared / "tokens"])
    assert ground.seen(job, "--mixture", file) == ground.seen(
        job, "--tokens", "300", "--seed", "3", out="same"
    )
    file.write_text("token: 300\n")
    ran = ground.run(job, "--mixture", file, out="never")
    assert (ran.code, "did you mean tokens?" in ran.message) == (2, True)


def one_of_two(*tokenizers: str) -> Case:
    """Two tokenizers that differ: exit code 1, and other lines than of one."""

    def case(ground: Ground, job: str) -> None:
        paths = [name.format(shared=ground.shared) for name in tokenizers]
        ran = run(job, *paths)
        assert ran.code == 1
        assert b"1 only in" in ran.out or b"have two ids" in ran.out
        assert ran.out != ground.seen(job)

    return case


def words_of_counts(ground: Ground, job: str) -> None:
    """Words are compared where there are counts."""
    assert b"words: all" in ground.seen(job)
    without = ground.base(job)[:2]
    ground.patch.setattr(Ground, "base", lambda *_: without)
    assert b"words" not in ground.seen(job)


def so_many_words(ground: Ground, job: str) -> None:
    """The most frequent words that are encoded otherwise, and how many there are more."""
    arguments = [ground.shared / "tok", ground.shared / "other", *ground.base(job)[2:]]
    lengths = [len(run(job, *arguments, "--top", top).out.splitlines()) for top in ("2", "3")]
    assert lengths[1] == lengths[0] + 1


def nothing_on_stderr(ground: Ground, job: str) -> None:
    """The result has amounts of free memory, which change."""
    ran = ground.run(job, "--quiet")
    assert (ran.code, ran.err) == (0, "")


def words_of_a_folder(ground: Ground, job: str) -> None:
    """The words of a corpus, and the folder of their counts, give the same figures."""
    texts = ground.seen(job)
    _, _, *rest = ground.base(job)
    ground.patch.setattr(Ground, "base", lambda *_: ["--counts", ground.shared / "counts", *rest])
    assert ground.seen(job) == texts


def tokens_of_a_folder(ground: Ground, job: str) -> None:
    """A tokens folder has its tokenizer, and no words."""
    ground.patch.setattr(Ground, "base", lambda *_: ["--tokens", ground.shared / "tokens"])
    (one,) = json.loads(ground.seen(job))["tokenizers"]
    assert one["figures"]["total"]["tokens"] > one["figures"]["total"]["words"] == 0


def counted_words_are_kept(ground: Ground, job: str) -> None:
    """The folder has counts, by which the next run need not count."""
    first = ground.seen(job, "--work", ground.own / "work")
    before = tree(ground.own / "work")
    assert "counts/__manifest" in before
    assert ground.seen(job, "--work", ground.own / "work") == first
    assert tree(ground.own / "work") == before


def work_begins_anew(ground: Ground, job: str) -> None:
    """Counts of other words are refused, and replaced when told so."""
    work = ("--work", ground.own / "work")
    other = ("--pretokenizer", "whitespace_split")
    ground.seen(job, *work)
    ran = ground.run(job, *work, *other)
    assert ran.code == 2
    assert "what differs" in ran.message
    assert ground.seen(job, *work, *other, "--overwrite") == ground.seen(job, *other)
    ran = ground.run(job, "--overwrite")
    assert ran.code == 2
    assert "--overwrite has no effect" in ran.message


def same_figures_of_splits(ground: Ground, job: str) -> None:
    """More splits are counted, and the figures are the same."""
    for number, work in enumerate(("one", "many")):
        finely = ("--range-bytes", "1KB") if number else ()
        assert ground.seen(job, *finely, "--work", ground.own / work) == ground.seen(job)
    one, many = (
        json.loads((ground.own / work / "counts" / "__plan").read_bytes())["splits"]
        for work in ("one", "many")
    )
    assert len(many) > len(one)


def runner_with_a_folder(ground: Ground, job: str) -> None:
    """A runner's workers need a folder that they see."""
    ran = ground.run(job, "--runner", "DirectRunner")
    assert ran.code == 2
    assert "--work must be set" in ran.message
    work = ("--work", ground.own / "work")
    assert ground.seen(job, "--runner", "DirectRunner", *work) == ground.seen(job)


def report_in_a_file(ground: Ground, job: str) -> None:
    """The report as JSON, in a file or on stdout, or as CSV."""
    files = {ending: ground.own / f"report.{ending}" for ending in ("json", "csv")}
    for file in files.values():
        assert ground.run(job, "--output", file).out == b""
    assert ground.run(job).out == files["json"].read_bytes()
    assert files["csv"].read_bytes().startswith(b"tokenizer,vocab_size,source,")


def frame(option: str) -> Case:
    """The token occurs once around each document, and is counted."""

    def case(ground: Ground, job: str) -> None:
        ground.seen(job, out="bare")
        ran = ground.run(job, option, END, "--summary-file", "-", "--quiet")
        bare, framed = read_shards(ground.own / "bare"), read_shards(ground.own / "out")
        if option == "--append":
            assert framed == [[*ids, 0] for ids in bare]
        else:
            assert framed == [[0, *ids] for ids in bare]
        assert ran.summary["tokens"] == sum(map(len, framed))
        both = ground.run(job, "--append", END, "--prepend", END, out="both")
        assert both.code == 0
        assert read_shards(ground.own / "both") == [[0, *ids, 0] for ids in bare]

    return case


def allowed_specials(ground: Ground, job: str) -> None:
    """None is the default; all, or those named, count as such."""
    if job == "tokenize":
        for value in ("none", "all", END):
            ground.seen(job, "--allowed-special", value, out=value.strip("<|>"))
        none, every, named = (
            [ids.count(0) for ids in read_shards(ground.own / name)]
            for name in ("none", "all", "endoftext")
        )
        assert sum(none) == 0
        assert sum(every) == 2
        assert named == every
    else:
        none = ground.run(job).out.split()
        every = ground.run(job, "--allowed-special", "all").out.split()
        assert b"0" not in none
        assert b"0" in every
        assert ground.run(job, "--allowed-special", END).out.split() == every
        assert ground.run(job, "--allowed-special", "none").out.split() == none
    ran = ground.run(job, "--allowed-special", "<|no|>", out="never")
    assert ran.code == 2
    assert "<|no|>" in ran.message


def encoded_again(ground: Ground, job: str) -> None:
    """Without the corpus refused; with it, more is compared."""
    ran = ground.run(job, "--full")
    assert ran.code == 2
    assert "--input" in ran.message
    arguments = ("--input", ground.shared / "a.jsonl", "--summary-file", "-", "--quiet")
    names, full = ground.run(job, *arguments), ground.run(job, *arguments, "--full")
    assert names.summary["compared"] != full.summary["compared"]


def compared_files(ground: Ground, job: str) -> None:
    """Files of other sizes are not those that were tokenized."""
    assert ground.run(job, "--input", ground.shared / "a.jsonl").code == 0
    ran = ground.run(job, "--input", ground.shared / "b.txt")
    assert ran.code == 1
    assert "a.jsonl is missing here" in ran.message
    other = write(ground.own / "a.jsonl", ["other"])
    ran = ground.run(job, "--input", other)
    assert ran.code == 1
    assert "a.jsonl" in ran.message


def positional(*other: str) -> Case:
    """Something else there gives another answer."""

    def case(ground: Ground, job: str) -> None:
        there = [part.format(shared=ground.shared) for part in other]
        flags = ground.base(job)
        flags = flags[flags.index("--tokenizer") :] if "--tokenizer" in flags else []
        quiet = ("--quiet", "--summary-file", "-")
        ran = run(job, *there, *flags, *quiet)
        assert ran.code == 0, ran.err
        assert ran.out != run(job, *ground.base(job), *quiet).out

    return case


def other_shards(ground: Ground, job: str) -> None:
    """Another folder gives other shards."""
    made = ground.seen(job)
    assert (
        run(job, ground.shared / "tokens2", "--shards", "2", "--output", ground.own / "2").code == 0
    )
    assert tree(ground.own / "2", without=("__job",)) != made


def sequences_in_a_file(ground: Ground, job: str) -> None:
    """The numbers of each shard."""
    target = ground.own / "sequences.json"
    assert ground.run(job, "--sequences", target).code == 0
    assert len(json.loads(target.read_bytes())) == len([*(ground.shared / "tokens").glob("*.bin")])


def divided(ground: Ground, job: str) -> None:
    """So many shards."""
    for shards in (1, 3):
        out = ground.own / str(shards)
        arguments = (ground.shared / "tokens", "--shards", shards, "--output", out)
        assert run(job, *arguments).code == 0
        assert len([*out.glob("*.bin")]) == shards
    assert ground.run(job, "--shards", "0").code == 2


def table(ground: Ground, job: str) -> None:
    """Tokens beside their ids and offsets."""
    lines = ground.run(job, "--show").out.decode().splitlines()
    ids = ground.run(job).out.decode().split()
    assert lines[0].split() == ["token", "id", "offsets", "text"]
    assert [line.split()[1] for line in lines[1:]] == ids


def shown_as_json(ground: Ground, job: str) -> None:
    """JSON lines instead of text, where these are asked for."""
    text = ground.run(job, out="text")
    lines = ground.run(job, "--progress", "json", "--quiet", out="json").err.splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    # On a busy machine both also report what is not done yet.
    stages = list(dict.fromkeys(row["stage"] for row in rows))
    assert stages
    done = [line.partition(": done, ")[0] for line in text.err.splitlines() if ": done, " in line]
    assert done == stages


COMMON: dict[str, Case] = {
    "--config": settings_from_a_file,
    "--quiet": silence,
    "--debug": traceback,
    "--summary-file": summary_in_a_file,
    "--storage-options": options_of_storage,
}
RUNNING: dict[str, Case] = {
    **COMMON,
    "--progress": shown_as_json,
    "--runner": chosen_runner,
    "--workers": threads,
    "--overwrite": begin_anew,
    "--output": output_is_where_it_was_asked_for,
}
READING: dict[str, Case] = {
    "--input": other_input,
    "--exclude": left_out,
    "--input-format": changes("--input-format", "text"),
    "--text-field": changes("--text-field", "body"),
    "--id-field": unusable_ids,
    "--document-separator": changes(
        *("--document-separator", r"\x7c"), base=("--input", "{shared}/b.txt")
    ),
    "--range-bytes": finer_ranges,
    "--max-rejects": allowed_rejects,
    "--max-lost": allowed_losses,
    **SOURCES,
}
FEW_EMPTY = ("--document-separator", "o")
RULES: dict[str, Case] = {
    "--empty-documents": changes(
        *("--empty-documents", "drop"), base=("--input", "{shared}/b.txt", *FEW_EMPTY)
    ),
    "--max-document-tokens": changes("--max-document-tokens", "4"),
    "--long-documents": changes("--long-documents", "cut", base=("--max-document-tokens", "4")),
}
CUT_SMALL = ("--range-bytes", "1KB")
CHARACTERS = ("--symbols", "characters")
WORDS = ("--pretokenizer", "whitespace_split")
PIECES = ("--model", "unigram", "--vocab-size", "150")
CUTTING: dict[str, Case] = {
    "--normalizer": changes("--normalizer", "lowercase"),
    "--pretokenizer": changes("--pretokenizer", "bert"),
    "--special-token": special_tokens_are_cut,
}
ARRANGING = {
    "--columns": changes("--columns", "labels", base=("--format", "arrow")),
    "--sequence-length": changes("--sequence-length", "16"),
    "--packing": changes("--packing", "best_fit", base=SEQUENCES),
    "--max-documents-per-sequence": changes(
        "--max-documents-per-sequence", "1", base=(*SEQUENCES, "--packing", "best_fit")
    ),
    "--pad-token": changes("--pad-token", END, base=(*SEQUENCES, "--packing", "best_fit")),
    "--shuffle-seed": changes("--shuffle-seed", "1"),
    "--validation-share": changes("--validation-share", "40%"),
}

CASES: dict[str, dict[str, Case]] = {
    "count": {
        **RUNNING,
        **READING,
        **CUTTING,
        "--tie-break": where_words_stand_first,
        "--dry-run": estimate,
        "--cluster": predicted,
    },
    **COUNTS_JOBS,
    "train": {
        **RUNNING,
        **READING,
        **CUTTING,
        **WEIGHING,
        "--dry-run": estimate,
        "--cluster": predicted,
        "--vocab-size": changes("--vocab-size", "290"),
        "--counts": from_counts,
        "--model": every_model_is_another,
        "--min-frequency": changes("--min-frequency", "40"),
        "--tie-break": changes("--tie-break", "greatest_bytes"),
        "--symbols": changes("--symbols", "characters", base=("--alphabet", "seen")),
        "--alphabet": changes("--alphabet", "seen"),
        "--initial-alphabet": changes("--initial-alphabet", "ÞŸ", base=CHARACTERS),
        "--limit-alphabet": changes("--limit-alphabet", "20", base=CHARACTERS),
        "--max-token-length": changes("--max-token-length", "3"),
        "--end-of-word-suffix": changes("--end-of-word-suffix", "</w>", base=CHARACTERS),
        "--end-of-word-symbol": changes(
            *("--end-of-word-symbol", "\u2402"), base=(*CHARACTERS, *WORDS)
        ),
        "--continuing-subword-prefix": prefixes,
        "--byte-fallback": changes("--byte-fallback", base=(*CHARACTERS, "--vocab-size", "600")),
        "--character-coverage": changes("--character-coverage", "0.9", base=PIECES),
        "--max-piece-length": changes("--max-piece-length", "2", base=PIECES),
        "--split-by-unicode-script": changes("--split-by-unicode-script", "false", base=PIECES),
        "--seed-size": changes("--seed-size", "50", base=PIECES),
        "--shrinking-factor": changes("--shrinking-factor", "0.5", base=PIECES),
        "--sub-iterations": changes("--sub-iterations", "1", base=PIECES),
        "--overshoot-factor": changes(
            "--overshoot-factor", "3", base=("--model", "mingram", "--vocab-size", "150")
        ),
        "--unk-token": unknown_tokens,
        "--template": template,
        **{
            f"--{name}-token": role(f"--{name}-token")
            for name in ("bos", "eos", "pad", "sep", "cls", "mask")
        },
        "--model-max-length": model_max_length,
        "--chat-template": chat_template,
        "--continue-from": more_merges,
        "--driver-memory": memory_of_the_learner,
        "--merge-rounds": learned_in_rounds,
    },
    "tokenize": {
        **RUNNING,
        **READING,
        "--tokenizer": other_tokenizer,
        "--format": refused("--format", "mosaic", said="--format must be one of megatron"),
        "--append": frame("--append"),
        "--prepend": frame("--prepend"),
        "--allowed-special": allowed_specials,
        "--add-special-tokens": refused("--add-special-tokens", said="adds no tokens"),
        **RULES,
        **ARRANGING,
        "--validation-by": changes("--validation-by", "id", base=("--validation-share", "40%")),
        "--shard-tokens": changes("--shard-tokens", "100", base=SEQUENCES),
        "--dry-run": changes("--dry-run", base=SEQUENCES),
        "--cluster": predicted,
    },
    "stream-tokenize": {
        **COMMON,
        **READING,
        **STREAMING,
        "--add-special-tokens": refused("--add-special-tokens", said="adds no tokens"),
        **RULES,
        "--output": output_is_where_it_was_asked_for,
        "--tokenizer": other_tokenizer,
        "--progress": shown_as_json,
        "--runner": refused("--runner", "DirectRunner", said="must be a runner that streams"),
    },
    "convert": {
        **RUNNING,
        "folders": other_shards,
        "--format": changes("--format", "flat"),
        "--shards": divided,
        "--columns": changes("--columns", "labels", base=("--format", "arrow")),
    },
    "mix": {
        **RUNNING,
        "--input": mixed_folders,
        "--tokens": changes("--tokens", "300"),
        "--share": shares,
        "--tokens-of": tokens_of_each,
        "--max-epochs": changes("--tokens", "9k", "--max-epochs", "9"),
        "--skip-tokens": changes("--skip-tokens", "300"),
        "--seed": changes("--seed", "1"),
        "--mixture": mixture_in_a_file,
        "--duplicates": changes(
            *("--duplicates", "drop"),
            base=("--input", "again={shared}/tokens3", "--share", "again=1,tokens=1"),
        ),
        "--identity": changes("--identity", "tokens", base=LABELLED),
        "--format": changes("--format", "flat"),
        **ARRANGING,
        "--validation-by": changes(
            "--validation-by", "id", base=(*LABELLED, "--validation-share", "40%")
        ),
        "--shard-tokens": changes("--shard-tokens", "100"),
        "--dry-run": asked_only,
    },
    "verify": {
        **COMMON,
        "folder": positional("{shared}/tokens2"),
        "--full": encoded_again,
        "--input": compared_files,
        "--workers": threads,
        "--progress": shown_as_json,
    },
    "blend": {
        **COMMON,
        "folders": positional("{shared}/tokens2"),
        "--weights": changes("--weights", "2"),
        "--sequences": sequences_in_a_file,
    },
    "evaluate": {
        **COMMON,
        **READING,
        "--range-bytes": same_figures_of_splits,
        "--source": changes("--source", "a=a*"),
        "--source-field": changes("--source-field", "id"),
        "--tokenizer": other_tokenizer,
        "--tiktoken-pretokenizer": pattern_of_a_tiktoken_file,
        "--counts": words_of_a_folder,
        "--tokens": tokens_of_a_folder,
        "--pretokenizer": changes("--pretokenizer", "whitespace_split"),
        "--work": counted_words_are_kept,
        "--overwrite": work_begins_anew,
        "--runner": runner_with_a_folder,
        "--mixture": changes("--mixture", "{shared}/mixture.yaml", base=("--source", "a=a*")),
        "--parallel": changes("--parallel", "other", base=("--source", "b=b*")),
        "--vocab-sizes": changes("--vocab-sizes", "300"),
        "--output": report_in_a_file,
        "--format": changes("--format", "csv"),
        "--sample": changes("--sample", "{shared}/a.jsonl", base=("--format", "html")),
        "--workers": threads,
        "--progress": shown_as_json,
    },
    "diff": {
        **COMMON,
        "a": one_of_two("{shared}/other", "{shared}/tok"),
        "b": one_of_two("{shared}/tok", "{shared}/other"),
        "--counts": words_of_counts,
        "--top": so_many_words,
        "--format": changes("--format", "json"),
        "--workers": threads,
        "--progress": shown_as_json,
    },
    "doctor": {
        **COMMON,
        "--quiet": nothing_on_stderr,
        "paths": positional("{shared}/tokens"),
        "--format": changes("--format", "json"),
    },
    "encode": {
        **COMMON,
        "text": positional("other text"),
        "--tokenizer": other_tokenizer,
        "--allowed-special": allowed_specials,
        "--show": table,
        "--add-special-tokens": with_special_tokens,
    },
    "decode": {**COMMON, "ids": positional("72"), "--tokenizer": other_tokenizer},
    "export": {
        **COMMON,
        "tokenizer": exported_tokenizer,
        "--format": other_form,
        "--output": written_where_it_was_asked_for,
    },
    "inspect": {**COMMON, "path": positional("{shared}/tokens")},
    "plan": {
        **COMMON,
        "--output": plan_in_a_file,
        "--input": other_input,
        "--exclude": left_out,
        "--input-format": changes("--input-format", "text"),
        "--document-separator": changes(
            *("--document-separator", "file"), base=("--input", "{shared}/b.txt", *CUT_SMALL)
        ),
        "--range-bytes": changes("--range-bytes", "1KB"),
    },
    "quickstart": {**RUNNING},
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> Path:
    """A corpus with a record for each option, and what jobs made of it."""
    folder = tmp_path_factory.mktemp("shared")
    rows = [
        {"id": str(i), "text": text, "body": text[::-1]} for i, text in enumerate(texts[100:139])
    ]
    rows.append({"id": "x", "half": "\ud800", "text": f"a{END}b {END}", "body": "b"})
    lines = [json.dumps(row) + "\n" for row in rows]
    (folder / "a.jsonl").write_text("".join(lines))
    write(folder / "b.txt", ["one | two", *texts[:20]])
    (folder / "mixture.yaml").write_text("tokens: 9\nshare: {a: 1}\n")
    arguments = ("--input", folder / "a.jsonl")
    tokenizer = ("--tokenizer", folder / "tok" / "tokenizer.json")
    size = ("--vocab-size", "400", "--special-token", END)
    for job in (
        ("count", *arguments, "--output", folder / "counts"),
        ("train", *arguments, *size, "--output", folder / "tok"),
        ("train", "--input", folder / "b.txt", *size, "--output", folder / "other"),
        ("tokenize", *arguments, *tokenizer, "--output", folder / "tokens"),
        ("tokenize", *arguments, *tokenizer, "--append", END, "--output", folder / "tokens2"),
        ("convert", folder / "tokens", "--format", "flat", "--output", folder / "tokens3"),
        ("tokenize", *arguments, *tokenizer, "--format", "arrow", "--output", folder / "labelled"),
    ):
        assert run(*job).code == 0
    # Ids that mean other bytes.
    other = folder / "other" / "tokenizer.json"
    value = json.loads(other.read_bytes())
    vocab = value["model"]["vocab"]
    vocab["g"], vocab["h"] = vocab["h"], vocab["g"]
    other.write_text(json.dumps(value))
    return folder


@pytest.fixture(scope="module")
def plain() -> dict[tuple[str, ...], object]:
    """What jobs make without the option in question."""
    return {}


@pytest.fixture
def ground(
    shared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plain: dict[tuple[str, ...], Any],
) -> Ground:
    """A folder of its own for each case."""
    few = (str(shared / "b.txt"), str(shared / "a.jsonl"))
    monkeypatch.setattr(quickstart, "_sources", lambda: few)
    monkeypatch.setattr(stream_tokenize, "run_pipeline", stream_by_hand.run_pipeline)
    return Ground(shared, tmp_path, monkeypatch, plain)


OPTIONS = [(job, flag) for job, spec in JOBS.items() for flag in spec.options]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("job", "flag"), OPTIONS)
def test_the_option_has_its_effect(job: str, flag: str, ground: Ground) -> None:
    assert flag in CASES[job], f"{job} {flag} has no case that shows what it does"
    CASES[job][flag](ground, job)


def test_there_is_no_case_of_an_option_that_is_gone() -> None:
    assert {(job, flag) for job, cases in CASES.items() for flag in cases} == set(OPTIONS)

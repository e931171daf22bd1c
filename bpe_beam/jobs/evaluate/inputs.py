"""The tokenizers that `evaluate` compares: their names, and the sizes of their vocabularies."""

from __future__ import annotations

from collections.abc import Sequence

from bpe_beam.errors import UsageError, parameter_renamed, require
from bpe_beam.folders.artifact_names import SUMMARY_FILE
from bpe_beam.jobs.input_folders import short_names
from bpe_beam.messages import did_you_mean
from bpe_beam.settings.evaluate import VocabSize
from bpe_beam.storage import Storage, redact
from bpe_beam.tokenizer.files import tokenizer_json
from bpe_beam.tokenizer.files.tiktoken_file import pretokenizer_of
from bpe_beam.tokenizer.tokenizer import Tokenizer

_TIKTOKEN = ".tiktoken"
_PRETOKENIZERS = "tiktoken_pretokenizers"


def unique(values: Sequence[str], parameter: str) -> None:
    """Refuse a value that is repeated."""
    whole = [redact(value) for value in values]
    repeated = next((value for value in whole if whole.count(value) > 1), None)
    require(repeated is None, f"must not repeat {repeated}", parameter)


def read_tokenizers(
    values: Sequence[str], pretokenizers: Sequence[str], storage: Storage
) -> tuple[list[str], list[Tokenizer]]:
    """Return the tokenizers that a command names, and their names."""
    unique(values, "tokenizers")
    pairs = [_named(value, storage) for value in values]
    short = iter(short_names([path for name, path in pairs if name is None]))
    names = [next(short) if name is None else name for name, _ in pairs]
    unique(names, "tokenizers")
    chosen = _chosen(pretokenizers, names)
    tokenizers = []
    used: set[str | None] = set()
    for name, (_, path) in zip(names, pairs, strict=True):
        if not path.endswith(_TIKTOKEN):
            tokenizers.append(Tokenizer.from_file(path, storage=storage))
            continue
        key = name if name in chosen else None
        used.add(key)
        pretokenizer = chosen.get(key)
        if pretokenizer is None:
            data, source = tokenizer_json.read_file(path, storage, _TIKTOKEN)
            pretokenizer = pretokenizer_of(data)
            require(
                pretokenizer is not None,
                f"must be given for {source}, which does not have the pattern that splits texts",
                _PRETOKENIZERS,
                remedy="give a name such as cl100k, or regex:PATTERN",
            )
        with parameter_renamed("pretokenizer", _PRETOKENIZERS):
            tokenizers.append(
                Tokenizer.from_tiktoken(path, pretokenizer=pretokenizer, storage=storage)
            )
    for unused, value in chosen.items():
        require(unused in used, f"has no effect: {value!r} is of no .tiktoken file", _PRETOKENIZERS)
    return names, tokenizers


def sizes_of(
    sizes: Sequence[VocabSize], names: Sequence[str], values: Sequence[str], storage: Storage
) -> dict[str, list[int]]:
    """Return the smaller sizes to evaluate of each tokenizer, by name.

    Sizes without a name are for the tokenizers that `train` wrote; for all if it wrote none: few
    people need the first merges of a published tokenizer.
    """
    of_all = [one for one in sizes if isinstance(one, int)]
    named: dict[str, list[int]] = {}
    for name, size in (one for one in sizes if not isinstance(one, int)):
        near = did_you_mean(name, names)
        require(name in names, f"must name a tokenizer, got {name!r}{near}", "vocab_sizes")
        named.setdefault(name, []).append(size)
    unnamed = names
    if of_all and len(values) > 1:
        trained = []
        for name, value in zip(names, values, strict=True):
            _, path = _named(value, storage)
            folder = path if storage.is_folder(path) else (path.rpartition("/")[0] or ".")
            if storage.exists(storage.join(folder, SUMMARY_FILE)):
                trained.append(name)
        unnamed = trained or names
    return {name: named.get(name) or (of_all if name in unnamed else []) for name in names}


def _named(value: str, storage: Storage) -> tuple[str | None, str]:
    """Return the name and the path of NAME=PATH; without a name it is None."""
    name, equals, path = value.partition("=")
    if not (equals and name and path) or "/" in name or storage.exists(value):
        return None, value
    return name, path


def _chosen(pretokenizers: Sequence[str], names: Sequence[str]) -> dict[str | None, str]:
    """Return the pre-tokenizers by the name of a tokenizer; None has the one of all others."""
    chosen: dict[str | None, str] = {}
    for value in pretokenizers:
        name, equals, rest = value.partition("=")
        key, pretokenizer = (name, rest) if equals and name in names else (None, value)
        if key in chosen:
            of = "all .tiktoken files" if key is None else key
            raise UsageError(f"must be given once for {of}, got {value!r} too", (_PRETOKENIZERS,))
        chosen[key] = pretokenizer
    return chosen

"""Folders of published models: which of their files is the tokenizer, and what the others add.

A `tokenizer.json` has everything and is read alone. Other files lack the special tokens and the
text steps, which `transformers` has in a class for each model. Classes that change ids or texts in
ways that are not known here are refused.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection
from typing import Any

from msgspec.structs import replace

from bpe_beam.errors import UsageError
from bpe_beam.storage import Storage, redact
from bpe_beam.tokenizer.files import sentencepiece_file, vocab_files
from bpe_beam.tokenizer.files.published_classes import (
    SENTENCEPIECE,
    VOCAB_AND_MERGES,
    VOCAB_TXT,
    PublishedClass,
)
from bpe_beam.tokenizer.files.published_settings import FolderSettings
from bpe_beam.tokenizer.files.transformers_files import (
    CHAT_TEMPLATES,
    TOKENIZER_FILE,
    ModelInput,
    read_chat_templates,
)
from bpe_beam.tokenizer.spec import TokenizerSpec

_SENTENCEPIECE_FILES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
FILES = (
    *(TOKENIZER_FILE, *_SENTENCEPIECE_FILES, "tekken.json"),
    *("vocab.json", "merges.txt", "vocab.txt"),
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "config.json"),
)
"""The files that are read, if a folder has them; of several tokenizers the first one."""

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


def find(name: str, revision: str | None, storage: Storage) -> str:
    """Return the folder of a tokenizer."""
    if storage.exists(name):
        return name
    if _HUB_ID.fullmatch(name) is None:
        raise UsageError(f"{redact(name)}: no such folder")
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise UsageError(
            f"{name}: no such folder; to read a repository of the hub, pip install 'bpe-beam[hf]'"
        ) from None
    try:
        wanted = [*FILES, *CHAT_TEMPLATES]
        return str(snapshot_download(name, revision=revision, allow_patterns=wanted))
    except (OSError, ValueError) as error:
        why = str(error).strip().partition("\n")[0]
        raise UsageError(f"{name}: no such folder, and not had from the hub: {why}") from None


def read(folder: str, storage: Storage, read_file: Callable[[str], TokenizerSpec]) -> TokenizerSpec:
    """Return the tokenizer in a folder."""
    names = set(storage.list_names(folder))
    if "__tokenizer" in names:  # of a folder of shards
        return read_file(storage.join(folder, "__tokenizer"))
    if TOKENIZER_FILE in names:
        spec = read_file(storage.join(folder, TOKENIZER_FILE))
        try:
            warning = FolderSettings(folder, storage, names).differences(spec)
        except UsageError as error:
            warning = f"{TOKENIZER_FILE} is read alone: {error}"
        return replace(spec, folder_warning=warning)
    if "__job" in names:  # of another job, or not finished
        raise UsageError(f"{redact(folder)} is a folder without a {TOKENIZER_FILE}")
    if "tekken.json" in names and names.isdisjoint(_SENTENCEPIECE_FILES):
        return read_file(storage.join(folder, "tekken.json"))
    settings = FolderSettings(folder, storage, names)
    files, kind = _files_and_class(settings, names)
    if files is None:
        raise UsageError(
            f"{redact(folder)} has no file of a tokenizer: {TOKENIZER_FILE}, a .model file of "
            "SentencePiece, tekken.json, vocab.json with merges.txt, or vocab.txt"
        )
    if kind is None:
        return settings.build(None, lambda _: read_file(storage.join(folder, files[0])))
    contents = [settings.file(name) for name in files]
    if kind.files == SENTENCEPIECE:
        model: Any = sentencepiece_file.read_pieces(*contents[0])
    elif kind.files == VOCAB_TXT:
        model = vocab_files.read_vocab_txt(*contents[0])
    else:
        special = settings.special(kind)
        added = [*special, *(token.content for token in settings.added(special))]
        model = vocab_files.read_vocab_and_merges(contents[0], contents[1], added)
        model = replace(model, added_tokens=())
    return settings.build(kind, lambda chosen: kind.build(model, chosen))


def _files_and_class(
    settings: FolderSettings, names: Collection[str]
) -> tuple[tuple[str, ...] | None, PublishedClass | None]:
    """Return the files of the model and its class; None for what is missing."""
    choices: dict[tuple[str, ...], str] = {
        **{(name,): SENTENCEPIECE for name in _SENTENCEPIECE_FILES},
        **{("vocab.json", "merges.txt"): VOCAB_AND_MERGES, ("vocab.txt",): VOCAB_TXT},
    }
    for files, kind in choices.items():
        if set(files) <= set(names):
            return files, settings.class_for(" and ".join(files), kind)
    return None, None


def has_tokenizer(names: Collection[str]) -> bool:
    """Return whether a folder with files of these names has a tokenizer, made by any program."""
    alone = {TOKENIZER_FILE, *_SENTENCEPIECE_FILES, "tekken.json", "vocab.txt"}
    return not alone.isdisjoint(names) or {"vocab.json", "merges.txt"} <= set(names)


def read_model_input(path: str, storage: Storage) -> ModelInput:
    """Return what the files next to a tokenizer's file tell of the model's input."""
    folder = path
    if not storage.is_folder(path):
        folder, slash, name = path.rpartition("/")
        if name not in FILES or folder.endswith("/"):
            return ModelInput()
        folder = (folder or "/") if slash else "."
        if name not in storage.list_names(folder):
            warnings.warn(
                f"{redact(folder)} cannot be listed, so the files next to {name} are not read: it "
                "has no roles of special tokens, length of the input and chat template",
                stacklevel=2,
            )
            return ModelInput()
    names = set(storage.list_names(folder))
    settings = FolderSettings(folder, storage, names)
    # A class adds its default tokens to a model, but not to a tokenizer that has all.
    complete = not names.isdisjoint((TOKENIZER_FILE, "tekken.json"))
    kind = None if complete else _files_and_class(settings, names)[1]
    templates = read_chat_templates(folder, storage)
    return ModelInput(settings.roles(kind), settings.max_length, templates)

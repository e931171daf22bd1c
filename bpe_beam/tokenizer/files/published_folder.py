"""Folders of published models: which of their files is the tokenizer, and what the others add.

A `tokenizer.json` has everything and is read alone. Other files lack the special tokens and the
text steps, which `transformers` has in a class for each model. Classes that change ids or texts in
ways that are not known here are refused.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.storage import Storage, redact
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.models import ErrorLocation, check_vocab
from bpe_beam.tokenizer.files import tokenizer_json, vocab_files
from bpe_beam.tokenizer.files.foreign_files import explained
from bpe_beam.tokenizer.files.json_node import Node, parse
from bpe_beam.tokenizer.files.published_classes import (
    CLASSES,
    SENTENCEPIECE,
    SPECIAL_LISTS,
    VOCAB_AND_MERGES,
    VOCAB_TXT,
    Chosen,
    PublishedClass,
)
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
_ROLES_BY_ID = tuple(f"{role}_token" for role in ["bos", "eos", "unk", "sep", "pad", "cls", "mask"])
"""The roles in the order in which `transformers` gives ids to their tokens."""


class _Token(Struct):
    """A token in a file of settings."""

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool | None = None  # None: by default
    special: bool = False
    has_settings: bool = False  # which count more than the settings in `added_tokens.json`

    def added(self, token_id: int, special: bool) -> AddedToken:
        """Return the added token with an id."""
        normalized = not (self.special or special) if self.normalized is None else self.normalized
        flags = (self.single_word, self.lstrip, self.rstrip, normalized, special)
        return AddedToken(token_id, self.content, *flags)


class _FolderSettings:
    """The settings next to a tokenizer, of any of the folder's files."""

    def __init__(self, folder: str, storage: Storage, names: set[str]) -> None:
        self.folder, self.storage, self._names = folder, storage, names
        self._config = self._object("tokenizer_config.json")
        self._by_id = self._config.field("added_tokens_decoder")
        # The older files count only where the newer one does not list the added tokens.
        older = ("special_tokens_map.json", "added_tokens.json")
        listed = "added_tokens_decoder" in self._config.object()
        self._map, self._ids = (
            Node(name, "", {}) if listed else self._object(name) for name in older
        )

    def file(self, name: str) -> tuple[bytes, str]:
        """Return the bytes of a file, and its name in messages."""
        return tokenizer_json.read_file(self.storage.join(self.folder, name), self.storage)

    def _object(self, name: str) -> Node:
        """Return the object in a file; an empty one if there is no such file."""
        if name not in self._names:
            return Node(name, "", {})
        data, source = self.file(name)
        with explained(data, source, "tokenizer_config.json"):
            node = Node(source, "", parse(data, source))
            node.object()
        return node

    def refuse(self, why: str) -> NoReturn:
        raise UsageError(f"{redact(self.folder)}: {why}")

    def class_for(self, file: str, files: str) -> PublishedClass | None:
        """Return the class of `transformers`; None: the folder names none, nor the files."""
        model = self._object("config.json")
        named = (self._config.field("tokenizer_class"), model.field("tokenizer_class"))
        name = next((node for node in named if node.value is not None), None)
        if name is not None:
            kind = CLASSES.get(name.string().removesuffix("Fast"))
        elif (name := model.field("model_type")).value is not None:
            model_type = name.string()
            of_type = (one for one in CLASSES.values() if model_type in one.model_types.split())
            kind = next(of_type, None)
        else:
            first = next(kind for kind in CLASSES.values() if kind.files == files)
            return None if files == SENTENCEPIECE else first
        if kind is None or kind.files != files:
            known = ", ".join(name for name, one in CLASSES.items() if one.files == files)
            name.refuse(
                f"{shortened(name.value)} is not supported with only {file}, which does not tell "
                f"all that its class does; the supported classes are {known}. Give a folder with "
                f"its {TOKENIZER_FILE}"
            )
        return kind

    def chosen(self, kind: PublishedClass) -> Chosen:
        for name, wanted in kind.fixed.items():
            node = self._config.field(name)
            if node.value not in (wanted, None):
                node.refuse(
                    f"must be {str(wanted).lower()} for this class, got {shortened(node.value)}, "
                    "which transformers 4.57 and 5 read differently. Give a folder with its "
                    f"{TOKENIZER_FILE}, or change it"
                )
        values = {name: self._value(name, default) for name, default in kind.settings.items()}
        lists = [token.content for token in self._without_role()[0]]
        return Chosen(self.roles(kind), values, lists)

    def _value(self, name: str, default: bool | int | str | None) -> Any:
        """Return a setting: a flag, a number from 0 to 1,000, or a token that may be null."""
        node = self._config.field(name)
        if name.endswith("_token") and not name.startswith("add_"):
            given = name in self._config.object()
            return (None if node.value is None else _token(node).content) if given else default
        if node.value is None:
            return default
        if default is None or isinstance(default, bool):
            node.expect(True, False)
        elif type(node.value) is not int or not 0 <= node.value <= 1000:
            node.refuse(f"must be from 0 to 1,000, got {shortened(node.value)}")
        return node.value

    def build(
        self, kind: PublishedClass | None, make: Callable[[Chosen], TokenizerSpec]
    ) -> TokenizerSpec:
        """Return the tokenizer of a class, with its added tokens and those around a text."""
        try:
            if kind is None:
                spec = self._with_tokens(make(Chosen({}, {}, ())), None, ())
            else:
                chosen = self.chosen(kind)
                spec = self._with_tokens(make(chosen), kind, kind.listed(chosen))
                ids = {**spec.model.vocab, **{one.content: one.id for one in spec.added_tokens}}
                spec = replace(spec, post_processor=kind.frame(chosen, lambda t: self._id(t, ids)))
            spec.check(ErrorLocation())
        except UsageError as error:
            if str(error).startswith(redact(self.folder)):
                raise
            self.refuse(str(error))
        return spec

    def _id(self, token: str, ids: Mapping[str, int]) -> int:
        if token not in ids:
            self.refuse(f"the special token {token!r} is not in the vocabulary")
        return ids[token]

    def _with_tokens(
        self, spec: TokenizerSpec, kind: PublishedClass | None, listed: Sequence[str]
    ) -> TokenizerSpec:
        """Return a tokenizer with the added tokens of the files and of a class."""
        special = self.special(kind, listed)
        vocab = spec.model.vocab
        tokens = {token.content: token for token in spec.added_tokens}
        tokens |= {token.content: token for token in self.added(special)}
        for content, token in special.items():
            known = tokens.get(content)
            if known is not None and not token.has_settings:
                tokens[content] = replace(known, special=True)
                continue
            token_id = vocab.get(content) if known is None else known.id
            if token_id is None:
                token_id = self._next_id(content, vocab, tokens)
            tokens[content] = token.added(token_id, True)
        read = (*_ROLES_BY_ID, *(kind.settings if kind is not None else ()))
        for name, content in self._config.object().items():
            other = name.endswith("_token") and name not in read and isinstance(content, str)
            if other and content not in tokens:
                self._config.field(name).refuse(
                    f"transformers 5 adds {shortened(content)} as a special token and 4.57 does "
                    "not: list it in added_tokens_decoder or extra_special_tokens, or remove it"
                )
        by_id = tuple(sorted(tokens.values(), key=lambda token: token.id))
        return replace(spec, added_tokens=by_id)

    def _next_id(
        self, content: str, vocab: Mapping[str, int], tokens: Mapping[str, AddedToken]
    ) -> int:
        """Return the id of a special token that no file has: the next one."""
        ids = {*vocab.values(), *(token.id for token in tokens.values())}
        if ids and max(ids) + 1 != len(ids):
            self.refuse(
                f"no file has the id of the special token {content!r}, and as the ids have holes, "
                f"transformers would give it one that is taken or counted differently: list it in "
                "added_tokens_decoder of tokenizer_config.json"
            )
        return len(ids)

    def added(self, special: Collection[str]) -> Iterator[AddedToken]:
        """Yield the tokens that have an id in the files."""
        for key in self._by_id.object() if self._by_id.value is not None else ():
            token = self._by_id.field(key).convert(_Token)
            if not key.isdecimal() or len(key) > 10:
                self._by_id.refuse(f"{shortened(key)} is not an id")
            added = token.added(int(key), token.special)
            yield replace(added, special=token.special or token.content in special)
        listed = {*self.roles(None).values(), *(one.content for one in self._without_role()[0])}
        ids, source = tokenizer_json.read_vocab(self._ids), self._ids.source
        check_vocab(ids, ErrorLocation(token=lambda token: f"{source}: {shortened(token)}"))
        for content, token_id in ids.items():
            plain = content not in listed
            yield AddedToken(token_id, content, normalized=plain, special=content in special)

    def special(self, kind: PublishedClass | None, listed: Sequence[str] = ()) -> dict[str, _Token]:
        """Return the special tokens of the files and of a class, by content."""
        tokens: dict[str, _Token] = {}
        lists, named = self._without_role()
        for token in (*self._role_tokens(kind).values(), *lists, *map(_Token, listed), *named):
            tokens.setdefault(token.content, token)
        return tokens

    def roles(self, kind: PublishedClass | None) -> dict[str, str]:
        """Return the special tokens by role, of the files and of a class."""
        return {role: token.content for role, token in self._role_tokens(kind).items()}

    @property
    def max_length(self) -> int | None:
        """The most tokens of a model's input; None: no limit, for which there is a huge number."""
        length = self._config.field("model_max_length").value
        return length if type(length) is int and 0 < length < 1 << 63 else None

    def _role_tokens(self, kind: PublishedClass | None) -> dict[str, _Token]:
        """Return the special tokens by role, in the order in which new ones get ids."""
        tokens: dict[str, _Token] = {}
        newer = self._by_id.value is not None
        for role in _ROLES_BY_ID:
            holders = [one for one in (self._map, self._config) if role in one.object()]
            if holders and (node := holders[0].field(role)).value is not None:
                written = isinstance(node.value, str)
                tokens[role] = replace(_token(node), has_settings=not written and not newer)
            elif not holders and kind is not None and role in kind.roles:
                tokens[role], written = _Token(kind.roles[role]), True
            else:
                continue
            if written and kind is not None and role in kind.strips_left:
                tokens[role] = replace(tokens[role], lstrip=True, has_settings=not newer)
        return tokens

    def _without_role(self) -> tuple[list[_Token], list[_Token]]:
        """Return the special tokens of lists, and those with a name that is no role."""
        lists: list[Node] = []
        named: list[Node] = []
        for settings in (self._config, self._map):
            for node in map(settings.field, SPECIAL_LISTS):
                if isinstance(node.value, list):
                    lists += node.items()
                elif node.value is not None:
                    named += map(node.field, node.object())
        return [_token(node) for node in lists], [_token(node) for node in named]

    def differences(self, spec: TokenizerSpec) -> str | None:
        """Return a warning where the files differ from `tokenizer.json`; None if they agree."""
        special = self.special(None)
        known = {token.content: token for token in spec.added_tokens}
        added = {token.content: token for token in self.added(special)}
        if self._by_id.value is None:  # the older file has no settings but ids
            known_ids = {content: token.id for content, token in known.items()}
            other = [one for one, token in added.items() if known_ids.get(one) != token.id]
        else:
            other = [one for one, token in added.items() if known.get(one) != token]
        other += [one for one in special if one not in known or not known[one].special]
        if not other:
            return None
        return (
            f"the files next to {TOKENIZER_FILE} give other ids or settings to the tokens "
            f"{shortened(list(dict.fromkeys(other)))}: they are read as {TOKENIZER_FILE} has them, "
            "and transformers changes them"
        )


def _token(node: Node) -> _Token:
    """Return a token from its text, or from an object with its settings."""
    if isinstance(node.value, str):
        return _Token(node.value)
    return replace(node.convert(_Token), has_settings=True)


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
            warning = _FolderSettings(folder, storage, names).differences(spec)
        except UsageError as error:
            warning = f"{TOKENIZER_FILE} is read alone: {error}"
        return replace(spec, folder_warning=warning)
    if "__job" in names:  # of another job, or not finished
        raise UsageError(f"{redact(folder)} is a folder without a {TOKENIZER_FILE}")
    if "tekken.json" in names and names.isdisjoint(_SENTENCEPIECE_FILES):
        return read_file(storage.join(folder, "tekken.json"))
    settings = _FolderSettings(folder, storage, names)
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
        from bpe_beam.tokenizer.files import sentencepiece_file

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
    settings: _FolderSettings, names: Collection[str]
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
    settings = _FolderSettings(folder, storage, names)
    # A class adds its default tokens to a model, but not to a tokenizer that has all.
    complete = not names.isdisjoint((TOKENIZER_FILE, "tekken.json"))
    kind = None if complete else _files_and_class(settings, names)[1]
    templates = read_chat_templates(folder, storage)
    return ModelInput(settings.roles(kind), settings.max_length, templates)

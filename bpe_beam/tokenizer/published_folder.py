"""Folders of published models: which of their files is the tokenizer, and what the others add.

A `tokenizer.json` has everything and is read alone. Other files lack the special tokens and the
text steps, which `transformers` has in a class for each model. Classes that change ids or texts in
ways that are not known here are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.storage import Storage, redact
from bpe_beam.tokenizer import tokenizer_json, vocab_files
from bpe_beam.tokenizer.added_tokens import AddedToken
from bpe_beam.tokenizer.decoders import WordPieceDecoder
from bpe_beam.tokenizer.foreign_files import explained
from bpe_beam.tokenizer.json_node import Node, parse
from bpe_beam.tokenizer.models import ErrorLocation, WordPiece, check_vocab
from bpe_beam.tokenizer.normalizers import NFC, BertNormalizer
from bpe_beam.tokenizer.postprocessors import (
    BertProcessing,
    RobertaProcessing,
    SpecialToken,
    TemplatePiece,
    TemplateProcessing,
    TemplateReference,
)
from bpe_beam.tokenizer.pretokenizers import (
    BertPreTokenizer,
    ByteLevelPreTokenizer,
    pretokenizer_from_name,
)
from bpe_beam.tokenizer.spec import TokenizerSpec
from bpe_beam.tokenizer.transformers_files import ROLES, TOKENIZER_FILE, ModelInput

_SENTENCEPIECE_FILES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "config.json")
FILES = (
    TOKENIZER_FILE,
    *_SENTENCEPIECE_FILES,
    "tekken.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    *_SETTINGS,
)
"""The files that are read, if a folder has them; of several tokenizers the first one."""

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


def find(name: str, revision: str | None, storage: Storage) -> str:
    """Return the folder of a tokenizer.

    Args:
        name: The folder, or the name of a repository of the Hugging Face hub. The repository's
            files are downloaded into the hub's cache, or taken from there.
        revision: The branch, tag or commit of the repository; None: its main branch.
        storage: The storage client.

    Raises:
        UsageError: There is neither, or the hub cannot be reached and its cache lacks the files.
    """
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
        return str(snapshot_download(name, revision=revision, allow_patterns=list(FILES)))
    except (OSError, ValueError) as error:
        why = str(error).strip().partition("\n")[0]
        raise UsageError(f"{name}: no such folder, and not had from the hub: {why}") from None


def read(folder: str, storage: Storage, read_file: Callable[[str], TokenizerSpec]) -> TokenizerSpec:
    """Return the tokenizer in a folder.

    Args:
        folder: A path or URL.
        storage: The storage client.
        read_file: Returns the tokenizer in a file that has all of it.

    Raises:
        UsageError: The folder has no such files, or they need a class that is not supported.
    """
    names = set(storage.list_names(folder))
    settings = _Settings(folder, storage, names)
    if "job.json" in names and TOKENIZER_FILE not in names:  # of another job, or not finished
        raise UsageError(f"{redact(folder)} is a folder without a {TOKENIZER_FILE}")
    if TOKENIZER_FILE in names:
        return read_file(storage.join(folder, TOKENIZER_FILE))
    for name in _SENTENCEPIECE_FILES:
        if name in names:
            return _sentencepiece(read_file(storage.join(folder, name)), name, settings)
    if "tekken.json" in names:
        return read_file(storage.join(folder, "tekken.json"))
    if {"vocab.json", "merges.txt"} <= names:
        return _vocab_and_merges(settings)
    if "vocab.txt" in names:
        return _vocab_txt(settings)
    raise UsageError(
        f"{redact(folder)} has no file of a tokenizer: {TOKENIZER_FILE}, a .model file of "
        "SentencePiece, tekken.json, vocab.json with merges.txt, or vocab.txt"
    )


def has_tokenizer(names: Collection[str]) -> bool:
    """Return whether a folder with files of these names has a tokenizer, made by any program."""
    alone = {TOKENIZER_FILE, *_SENTENCEPIECE_FILES, "tekken.json", "vocab.txt"}
    return not alone.isdisjoint(names) or {"vocab.json", "merges.txt"} <= set(names)


def model_input(folder: str, storage: Storage) -> ModelInput:
    """Return the roles of special tokens and the length of the input that a folder's files name.

    Args:
        folder: A path or URL.
        storage: The storage client.

    Raises:
        UsageError: A file is not JSON, or a role is not a token.
    """
    settings = _Settings(folder, storage, set(storage.list_names(folder)))
    return ModelInput(settings.roles, settings.max_length)


class _Token(Struct):
    """A token in a file of settings."""

    content: str
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = False


class _Settings:
    """The settings beside a tokenizer, of any of the folder's files.

    Args:
        folder: The folder.
        storage: The storage client.
        names: The names of the folder's files.
    """

    def __init__(self, folder: str, storage: Storage, names: set[str]) -> None:
        self.folder, self.storage, self._names = folder, storage, names
        self._config = self._object("tokenizer_config.json")
        self._class = self._config.field("tokenizer_class").value
        if self._class is None:
            self._class = self._object("config.json").field("tokenizer_class").value

    @property
    def names_class(self) -> bool:
        """Whether the folder names the class of `transformers`."""
        return self._class is not None

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
        """Raise UsageError for the folder."""
        raise UsageError(f"{redact(self.folder)}: {why}")

    def class_name(self, file: str, known: tuple[str, ...]) -> str:
        """Return the class of `transformers`, the first known one if the folder names none.

        Args:
            file: The file that the class would read.
            known: The names of the supported classes.
        """
        named = self._class
        if named is None:
            return known[0]
        name = str(named).removesuffix("Fast")
        if name not in known:
            self.refuse(
                f"{shortened(named)} is not supported with only {file}, which does not tell all "
                f"that this class does; the supported ones are {', '.join(known)}. Give a folder "
                f"with its {TOKENIZER_FILE}"
            )
        return name

    def flag(self, name: str, default: bool | None) -> Any:
        """Return a setting that is true or false.

        Args:
            name: Its name.
            default: Its value where it is missing, which may be None.
        """
        node = self._config.field(name)
        if node.value is None:
            return default
        node.expect(True, False)
        return node.value

    def number(self, name: str, default: int) -> int:
        """Return a setting that is a number from 0 to 1,000.

        Args:
            name: Its name.
            default: Its value where it is missing.
        """
        value = self._config.field(name).value
        value = default if value is None else value
        if type(value) is not int or not 0 <= value <= 1000:
            self._config.field(name).refuse(f"must be from 0 to 1,000, got {shortened(value)}")
        return value

    def tokens(
        self, vocab: Mapping[str, int], defaults: Mapping[str, str] = {}
    ) -> tuple[AddedToken, ...]:
        """Return the added tokens in the order of ids.

        Args:
            vocab: The vocabulary without them.
            defaults: The special tokens by role that the class has where the files name no other;
                those that are not in the vocabulary are left out.
        """
        added: dict[str, AddedToken] = {}
        by_id = self._config.field("added_tokens_decoder")
        for key in by_id.object() if by_id.value is not None else ():
            token = by_id.field(key).convert(_Token)
            if not key.isdecimal() or len(key) > 10:
                by_id.refuse(f"{shortened(key)} is not an id")
            added[token.content] = _added(int(key), token)
        roles = {**defaults, **self.roles}
        special = {*roles.values(), *(token.content for token in self._without_role())}
        for content, token_id in _checked_vocab(self._object("added_tokens.json")).items():
            if content not in added:
                added[content] = AddedToken(token_id, content, special=content in special)
        for token in (*(token for _, token in self._roles()), *self._without_role()):
            if token.content not in added:
                if token.content not in vocab:
                    self.refuse(f"no file has the id of the special token {token.content!r}")
                added[token.content] = _added(vocab[token.content], replace(token, special=True))
        for content in roles.values():
            if content in vocab and content not in added:
                added[content] = AddedToken(vocab[content], content)
        return tuple(sorted(added.values(), key=lambda token: token.id))

    @property
    def roles(self) -> dict[str, str]:
        """The special tokens by role."""
        return {role: token.content for role, token in self._roles()}

    @property
    def max_length(self) -> int | None:
        """The most tokens of a model's input; None: no limit, for which there is a huge number."""
        length = self._config.field("model_max_length").value
        return length if type(length) is int and 0 < length < 1 << 63 else None

    def role(self, name: str, default: str) -> str:
        """Return the special token of a role.

        Args:
            name: The role, such as `cls_token`.
            default: The token where the folder names none.
        """
        return self.roles.get(name, default)

    def _roles(self) -> Iterator[tuple[str, _Token]]:
        """Yield the special tokens that have a role; those of `tokenizer_config.json` last."""
        for settings in (self._object("special_tokens_map.json"), self._config):
            for key, value in settings.object().items():
                if key in ROLES and value is not None:
                    yield key, _token(settings.field(key))

    def _without_role(self) -> Iterator[_Token]:
        for settings in (self._object("special_tokens_map.json"), self._config):
            for key in ("additional_special_tokens", "extra_special_tokens"):
                node = settings.field(key)
                if isinstance(node.value, list):
                    yield from map(_token, node.items())


def _token(node: Node) -> _Token:
    """Return a token from its text, or from an object with its settings."""
    return _Token(node.value) if isinstance(node.value, str) else node.convert(_Token)


def _added(token_id: int, token: _Token) -> AddedToken:
    flags = (token.single_word, token.lstrip, token.rstrip, token.normalized, token.special)
    return AddedToken(token_id, token.content, *flags)


def _sentencepiece(spec: TokenizerSpec, name: str, settings: _Settings) -> TokenizerSpec:
    """Return a tokenizer of SentencePiece with the added tokens of its folder."""
    known = ("LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "T5Tokenizer")
    kind = settings.class_name(name, known)
    vocab = spec.model.vocab
    added = {token.content: token for token in settings.tokens(vocab)}
    if kind == "T5Tokenizer":
        size, extra = len(vocab), settings.number("extra_ids", 100)
        for number in range(extra):
            text = f"<extra_id_{number}>"
            fresh = AddedToken(size + extra - 1 - number, text, lstrip=True, rstrip=True)
            added.setdefault(text, fresh)
    own = {token.content for token in spec.added_tokens}
    more = [token for token in added.values() if token.content not in own]
    for token in more:
        if token.content in vocab and token.special:
            settings.refuse(f"the special token {token.content!r} is a normal piece of {name}")
    new = (token for token in more if token.content not in vocab)
    tokens = (*spec.added_tokens, *sorted(new, key=lambda token: token.id))
    frame = _sentencepiece_frame(kind, vocab, settings) if settings.names_class else None
    return _checked(replace(spec, added_tokens=tokens, post_processor=frame), settings)


def _sentencepiece_frame(
    kind: str, vocab: Mapping[str, int], settings: _Settings
) -> TemplateProcessing | None:
    """Return the special tokens that a class puts around a text on request."""
    of_t5 = kind == "T5Tokenizer"
    names = [settings.role("bos_token", "<s>"), "$A", settings.role("eos_token", "</s>")]
    if of_t5 or not settings.flag("add_bos_token", True):
        del names[0]
    if not (of_t5 or settings.flag("add_eos_token", False)):
        del names[-1]
    ids = {name: _id_of(name, vocab, settings) for name in names if name != "$A"}
    special = {name: SpecialToken(name, (token_id,), (name,)) for name, token_id in ids.items()}
    single, second = (
        tuple(
            TemplatePiece(text=TemplateReference(text, type_id))
            if name == "$A"
            else TemplatePiece(special=TemplateReference(name, type_id))
            for name in names
        )
        for type_id, text in enumerate("AB")
    )
    return TemplateProcessing(single, (*single, *second), special) if special else None


def _vocab_and_merges(settings: _Settings) -> TokenizerSpec:
    """Return a byte-level tokenizer of the class that the folder names."""
    known = ("GPT2Tokenizer", "RobertaTokenizer", "Qwen2Tokenizer")
    kind = settings.class_name("vocab.json and merges.txt", known)
    vocab, merges = settings.file("vocab.json"), settings.file("merges.txt")
    ids = _checked_vocab(Node(vocab[1], "", parse(*vocab)))
    if settings.flag("add_bos_token", False):
        settings.refuse(f"add_bos_token is not supported without {TOKENIZER_FILE}")
    end = "<|endoftext|>"
    defaults = {"eos_token": end, "pad_token": end}
    if kind == "RobertaTokenizer":
        defaults = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
        defaults |= {"pad_token": "<pad>", "mask_token": "<mask>"}
    added = settings.tokens(ids, defaults)
    spec = vocab_files.read_vocab_and_merges(vocab, merges, [token.content for token in added])
    prefix = settings.flag("add_prefix_space", False)
    pre_tokenizer: Any = ByteLevelPreTokenizer(add_prefix_space=prefix)
    if kind == "Qwen2Tokenizer":
        pre_tokenizer = pretokenizer_from_name("qwen2", byte_level=True)
        spec = replace(spec, normalizer=NFC())
    if kind == "RobertaTokenizer":
        mask = settings.role("mask_token", "<mask>")
        added = tuple(replace(one, lstrip=True) if one.content == mask else one for one in added)
        frame = [settings.role("sep_token", "</s>"), settings.role("cls_token", "<s>")]
        sep, cls = ((token, _id_of(token, ids, settings)) for token in frame)
        spec = replace(spec, post_processor=RobertaProcessing(sep, cls, True, prefix))
    return _checked(replace(spec, added_tokens=added, pre_tokenizer=pre_tokenizer), settings)


def _vocab_txt(settings: _Settings) -> TokenizerSpec:
    """Return BERT's tokenizer."""
    settings.class_name("vocab.txt", ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"))
    vocab = vocab_files.read_vocab_txt(*settings.file("vocab.txt"))
    names = ("unk", "sep", "pad", "cls", "mask")
    defaults = {f"{name}_token": f"[{name.upper()}]" for name in names}
    frame = (settings.role(f"{name}_token", f"[{name.upper()}]") for name in ("sep", "cls"))
    sep, cls = ((token, _id_of(token, vocab, settings)) for token in frame)
    spec = TokenizerSpec(
        WordPiece(vocab, settings.role("unk_token", "[UNK]")),
        settings.tokens(vocab, defaults),
        normalizer=BertNormalizer(
            handle_chinese_chars=settings.flag("tokenize_chinese_chars", True),
            strip_accents=settings.flag("strip_accents", None),
            lowercase=settings.flag("do_lower_case", True),
        ),
        pre_tokenizer=BertPreTokenizer(),
        post_processor=BertProcessing(sep, cls),
        decoder=WordPieceDecoder(),
    )
    return _checked(spec, settings)


def _checked_vocab(node: Node) -> dict[str, int]:
    """Return the ids of tokens in the order of ids, all of them valid."""
    vocab = tokenizer_json.read_vocab(node)
    check_vocab(vocab, ErrorLocation(token=lambda token: f"{node.source}: {shortened(token)}"))
    return vocab


def _id_of(token: str, vocab: Mapping[str, int], settings: _Settings) -> int:
    if token not in vocab:
        settings.refuse(f"the special token {token!r} is not in the vocabulary")
    return vocab[token]


def _checked(spec: TokenizerSpec, settings: _Settings) -> TokenizerSpec:
    """Return a tokenizer whose parts fit each other."""
    try:
        spec.check(ErrorLocation())
    except UsageError as error:
        settings.refuse(str(error))
    return spec

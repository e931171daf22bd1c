"""`Tokenizer`: text to ids and back.

The `TokenizerSpec` describes the tokenizer, and native code encodes. This class checks arguments,
passes UTF-8 on, and adds positions to errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer import text_input
from bpe_beam.tokenizer.components.added_tokens import AddedToken, AddedTokens
from bpe_beam.tokenizer.components.models import BPE, OF_ARGUMENTS, Unigram
from bpe_beam.tokenizer.deadline import deadline_of
from bpe_beam.tokenizer.encoding.native_encoder import holds_gil
from bpe_beam.tokenizer.encoding.text_encoder import TextEncoder
from bpe_beam.tokenizer.files import tokenizer_json
from bpe_beam.tokenizer.spec import TokenizerSpec, byte_level_spec

# Modules for other files, for batches and for fingerprints are imported where they are used: most
# processes load one `tokenizer.json`, and start faster without them.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from bpe_beam.api.evaluate import TextsOrCounts
    from bpe_beam.storage import PathName, Storage
    from bpe_beam.tokenizer.encoding.batch_output import Output
    from bpe_beam.tokenizer.encoding.id_decoder import IdDecoder
    from bpe_beam.tokenizer.files.transformers_files import ModelInput


class _Role:
    """A property of a tokenizer: the special token of a role, such as `eos_token`."""

    def __set_name__(self, owner: type[Tokenizer], name: str) -> None:
        self._role = name

    def __get__(self, tokenizer: Tokenizer | None, owner: type[Tokenizer]) -> str | None:
        return None if tokenizer is None else tokenizer.roles.get(self._role)


class _RoleId(_Role):
    """A property of a tokenizer: the id of the special token of a role, such as `eos_token_id`."""

    def __get__(self, tokenizer: Any, owner: type[Tokenizer]) -> Any:
        if tokenizer is None:
            return None
        token = tokenizer.roles.get(self._role.removesuffix("_id"))
        return None if token is None else tokenizer.token_to_id(token)


class Tokenizer:
    """A tokenizer, made by one of the `from_...` methods. Immutable; threads may share it.

    `bos_token`, `eos_token`, `pad_token`, `sep_token`, `cls_token`, `mask_token` and `unk_token`
    are the special tokens of these roles or None, and `bos_token_id` and so on their ids.
    """

    bos_token, bos_token_id = _Role(), _RoleId()
    eos_token, eos_token_id = _Role(), _RoleId()
    pad_token, pad_token_id = _Role(), _RoleId()
    sep_token, sep_token_id = _Role(), _RoleId()
    cls_token, cls_token_id = _Role(), _RoleId()
    mask_token, mask_token_id = _Role(), _RoleId()
    unk_token, unk_token_id = _Role(), _RoleId()

    def __init__(
        self,
        spec: TokenizerSpec,
        model_input: ModelInput | Callable[[], ModelInput] | None = None,
    ) -> None:
        """Make a tokenizer from a checked spec; the `from_...` methods read and check it.

        Args:
            spec: The components.
            model_input: The roles of special tokens, the length of the model's input, and chat
                templates; a function reads them when they are first needed.
        """
        self._spec = spec
        self._source_of_input = model_input
        self._added = AddedTokens(spec.added_tokens)

    # ---- reading and writing ----

    @classmethod
    def from_file(cls, path: PathName, *, storage: Storage | None = None) -> Tokenizer:
        """Return the tokenizer in a `tokenizer.json`, a SentencePiece `.model` or a `tekken.json`.

        The roles of special tokens, the length of the model's input and chat templates are those of
        the files beside it, which are read when they are first needed.

        Args:
            path: A path or any URL that fsspec opens, of the file or of its folder, which is read
                as `from_pretrained` reads it.
            storage: The storage client; None: one without options.

        Raises:
            UsageError: The file does not exist, or is not a tokenizer that this version supports;
                the message has the file, the JSON path, and the supported values.
        """
        try:
            data, source = tokenizer_json.read_file(path, storage, None)
        except tokenizer_json.MissingFileError:
            return cls._from_folder(path, None, storage)
        beside = _reader_beside(path, storage)
        beginning = data[:4096]
        if beginning[:1] == b"\n" and b"\0" in beginning:  # messages begin so, and no JSON
            from bpe_beam.tokenizer.files import sentencepiece_file

            return cls(sentencepiece_file.read(data, source), beside)
        if b'"token_bytes"' in beginning:
            from bpe_beam.tokenizer.files import tekken_file

            if tekken_file.is_tekken(beginning):
                return cls(tekken_file.read(data, source), beside)
        return cls(tokenizer_json.read(data, source), beside)

    @classmethod
    def from_json(cls, text: str | bytes) -> Tokenizer:
        """Return the tokenizer in the text of a `tokenizer.json`; errors as `from_file`."""
        return cls(tokenizer_json.read(text, "tokenizer.json"))

    @classmethod
    def from_pretrained(
        cls, name: PathName, *, revision: str | None = None, storage: Storage | None = None
    ) -> Tokenizer:
        """Return the tokenizer of a published model.

        A `tokenizer.json` is preferred to all other files. Without one the files are read that
        `transformers` reads: SentencePiece's `.model`, `tekken.json`, `vocab.json` with
        `merges.txt`, or `vocab.txt`, with the special tokens of the files beside them. A warning
        tells of files beside a `tokenizer.json` that say other things of its added tokens.

        Args:
            name: A folder as a path or any URL that fsspec opens; or the name of a repository of
                the Hugging Face hub, such as `openai-community/gpt2`. That needs the package
                `huggingface_hub`, whose settings and cache are respected.
            revision: The branch, tag or commit of the repository; None: its main branch.
            storage: The storage client; None: one without options.

        Raises:
            UsageError: There is no such folder and no such repository, the hub cannot be reached
                and its cache lacks the files, or the files need a class of `transformers` that is
                not supported; the message says which.
        """
        tokenizer = cls._from_folder(name, revision, storage)
        if tokenizer.spec.folder_warning is not None:
            warnings.warn(tokenizer.spec.folder_warning, stacklevel=2)
        return tokenizer

    @classmethod
    def _from_folder(
        cls, name: PathName, revision: str | None, storage: Storage | None
    ) -> Tokenizer:
        """See `from_pretrained`; jobs show the warning by themselves."""
        from bpe_beam.storage import Storage, path_name
        from bpe_beam.tokenizer.files import published_folder

        storage, name = storage or Storage(), path_name(name, "name")
        folder = published_folder.find(name, revision, storage)
        if not storage.is_folder(folder):
            return cls.from_file(folder, storage=storage)
        return cls(
            published_folder.read(
                folder, storage, lambda path: cls.from_file(path, storage=storage).spec
            ),
            _reader_beside(folder, storage),
        )

    @classmethod
    def from_vocab_and_merges(
        cls,
        vocab_path: PathName,
        merges_path: PathName,
        special_tokens: Sequence[str] = (),
        *,
        storage: Storage | None = None,
    ) -> Tokenizer:
        """Return the tokenizer in GPT-2's pair of files, `vocab.json` and `merges.txt`.

        Args:
            vocab_path: A path or any URL that fsspec opens.
            merges_path: A path or URL of the merges.
            special_tokens: The texts of the special tokens. Those that are not in the vocabulary
                get the ids after its greatest id, in this order.
            storage: The storage client; None: one without options.

        Raises:
            UsageError: A file is missing or invalid, or the two do not match; the message has the
                file and the position.
        """
        from bpe_beam.tokenizer.files import vocab_files

        vocab = tokenizer_json.read_file(vocab_path, storage, "vocab.json")
        merges = tokenizer_json.read_file(merges_path, storage, "merges.txt")
        return cls(vocab_files.read_vocab_and_merges(vocab, merges, special_tokens))

    @classmethod
    def from_tiktoken(
        cls,
        path: PathName,
        *,
        pretokenizer: str | None = None,
        special_tokens: Mapping[str, int] = MappingProxyType({}),
        storage: Storage | None = None,
    ) -> Tokenizer:
        """Return the tokenizer in a `.tiktoken` file, which only has tokens and ranks.

        Args:
            path: A path or any URL that fsspec opens.
            pretokenizer: Name of the pre-tokenizer, as on the command line. None: that of a file
                that OpenAI published; for any other file `cl100k`, with a warning.
            special_tokens: Id by special token.
            storage: The storage client; None: one without options.

        Raises:
            UsageError: The file is missing or invalid, or a special token conflicts with it; the
                message has the line.
        """
        from bpe_beam.tokenizer.files import tiktoken_file

        data, source = tokenizer_json.read_file(path, storage, ".tiktoken")
        known = pretokenizer or tiktoken_file.pretokenizer_of(data)
        spec = tiktoken_file.read(data, source, known or "cl100k", special_tokens)
        if known is None:
            warnings.warn(
                f"{source} does not have the pattern that splits texts, and that of cl100k is "
                "used: other patterns give other ids. Pass pretokenizer=NAME, such as "
                'pretokenizer="cl100k"',
                stacklevel=2,
            )
        return cls(spec)

    @classmethod
    def from_sentencepiece(cls, path: PathName, *, storage: Storage | None = None) -> Tokenizer:
        """Return the tokenizer in a `.model` file of SentencePiece: BPE or Unigram.

        Its ids are those of SentencePiece. Control symbols are special tokens: they are recognized
        only where they are allowed.

        Args:
            path: A path or any URL that fsspec opens.
            storage: The storage client; None: one without options.

        Raises:
            UsageError: The file is missing or damaged, or has a setting that is not supported; the
                message has the position of the byte or the number of the piece.
        """
        from bpe_beam.tokenizer.files import sentencepiece_file

        file = tokenizer_json.read_file(path, storage, "tokenizer.model")
        return cls(sentencepiece_file.read(*file), _reader_beside(path, storage))

    @classmethod
    def from_tekken(cls, path: PathName, *, storage: Storage | None = None) -> Tokenizer:
        """Return the tokenizer in a `tekken.json` of Mistral's.

        Args:
            path: A path or any URL that fsspec opens.
            storage: The storage client; None: one without options.

        Raises:
            UsageError: The file is missing or invalid; the message has the JSON path.
        """
        from bpe_beam.tokenizer.files import tekken_file

        file = tokenizer_json.read_file(path, storage, "tekken.json")
        return cls(tekken_file.read(*file), _reader_beside(path, storage))

    def save_tiktoken(self, path: PathName, *, storage: Storage | None = None) -> None:
        """Write the model as a `.tiktoken` file, atomically.

        Args:
            path: A path or any URL that fsspec opens.
            storage: The storage client; None: one without options.

        Raises:
            UsageError: The file cannot represent this tokenizer; the message has the reason.
        """
        from bpe_beam.storage import Storage, path_name
        from bpe_beam.tokenizer.files import tiktoken_file

        (storage or Storage()).write_bytes(path_name(path), tiktoken_file.write(self._spec))

    def save_sentencepiece(
        self,
        path: PathName,
        *,
        bos_token: str | None = None,
        eos_token: str | None = None,
        pad_token: str | None = None,
        storage: Storage | None = None,
    ) -> None:
        """Write the tokenizer as a `.model` file of SentencePiece, atomically.

        SentencePiece gives the same ids. The post-processor and the decoder are not written.

        Args:
            path: A path or any URL that fsspec opens.
            bos_token: The special token that begins a text, for programs that ask the file for it;
                None: that of the tokenizer's `roles`.
            eos_token: The special token that ends a text.
            pad_token: The special token that fills up short texts.
            storage: The storage client; None: one without options.

        Raises:
            UsageError: The file cannot represent this tokenizer; the message has the reason.
        """
        from bpe_beam.storage import Storage, path_name
        from bpe_beam.tokenizer.files import sentencepiece_writing

        named = {"bos_token": bos_token, "eos_token": eos_token, "pad_token": pad_token}
        roles = {role: self.roles[role] for role in named if role in self.roles}
        roles |= {role: token for role, token in named.items() if token is not None}
        data = sentencepiece_writing.write(self._spec, roles)
        (storage or Storage()).write_bytes(path_name(path), data)

    @classmethod
    def from_learned(
        cls,
        vocab: Sequence[str],
        merges: Sequence[tuple[str, str]],
        special_tokens: Sequence[str] = (),
    ) -> Tokenizer:
        """Return a byte-level BPE tokenizer from its vocabulary and merges.

        Args:
            vocab: Tokens in the byte-level alphabet and the special tokens, in order of ids.
            merges: Pairs of tokens by rank.
            special_tokens: The tokens of the vocabulary that are special.

        Raises:
            UsageError: A token is listed twice, a token of a merge is not in the vocabulary, or a
                special token is missing or has the text of another token of the model.
        """
        ids: dict[str, int] = {}
        for token_id, token in enumerate(vocab):
            if ids.setdefault(token, token_id) != token_id:
                raise UsageError(f"vocab[{token_id}]: {shortened(token)} is listed twice")
        for token in special_tokens:
            if token not in ids:
                raise UsageError(f"special_tokens: {shortened(token)} is not in the vocabulary")
        by_id = sorted(special_tokens, key=lambda token: ids[token])
        added = tuple(AddedToken(ids[token], token) for token in by_id)
        model = BPE(ids, [(left, right) for left, right in merges])
        return cls(byte_level_spec(model, added, OF_ARGUMENTS))

    def to_json(self) -> str:
        """Return the text of the tokenizer's `tokenizer.json`; equal tokenizers give equal text."""
        return self.json_bytes.decode()

    @cached_property
    def json_bytes(self) -> bytes:
        """The bytes of the tokenizer's `tokenizer.json`."""
        return tokenizer_json.write(self._spec)

    def save(self, path: PathName, *, storage: Storage | None = None) -> None:
        """Write the tokenizer's `tokenizer.json`, atomically.

        Args:
            path: A path or any URL that fsspec opens.
            storage: The storage client; None: one without options.

        Raises:
            UsageError: Hugging Face's libraries would give added tokens other ids.
        """
        from bpe_beam.storage import Storage, path_name
        from bpe_beam.tokenizer.files.hugging_face_ids import check_ids

        check_ids(self._spec)
        (storage or Storage()).write_bytes(path_name(path), self.json_bytes)

    def save_pretrained(
        self,
        folder: PathName,
        *,
        model_max_length: int | None = None,
        chat_template: str | None = None,
        storage: Storage | None = None,
        **roles: str | None,
    ) -> None:
        """Write a folder that `transformers.AutoTokenizer.from_pretrained` opens.

        These are `tokenizer.json`, `tokenizer_config.json`, `special_tokens_map.json` and chat
        templates, each written atomically; a folder that does not exist is made. What is not given
        here is that of the tokenizer: of its `train`, or of the files beside the one that it was
        read from.

        Args:
            folder: A path or any URL that fsspec opens.
            model_max_length: The most tokens of the model's input, at least 1; None: that of the
                tokenizer, or no limit.
            chat_template: The Jinja template of conversations; None: those of the tokenizer.
            storage: The storage client; None: one without options.
            roles: Special tokens by their role: `bos_token`, `eos_token`, `pad_token`,
                `sep_token`, `cls_token`, `mask_token`, `unk_token`; None leaves a role out.

        Raises:
            UsageError: Hugging Face's libraries cannot read the tokenizer, there is no such role,
                its token is not a special token of the tokenizer, or another value is invalid.
        """
        from bpe_beam.storage import Storage, path_name
        from bpe_beam.tokenizer.files.transformers_files import write_folder

        files = self.pretrained_files(model_max_length, chat_template, roles)
        write_folder(path_name(folder, "folder"), files, storage or Storage())

    def pretrained_files(
        self,
        model_max_length: int | None = None,
        chat_template: str | None = None,
        roles: Mapping[str, str | None] = MappingProxyType({}),
    ) -> dict[str, bytes]:
        """Return the files that `save_pretrained` writes: their bytes by name in the folder.

        Args:
            model_max_length: As in `save_pretrained`.
            chat_template: As in `save_pretrained`.
            roles: As in `save_pretrained`.

        Raises:
            UsageError: As in `save_pretrained`.
        """
        from bpe_beam.tokenizer.files import transformers_files

        known = self.model_input
        templates = known.chat_templates if chat_template is None else {"default": chat_template}
        chosen = {**known.roles, **roles}
        model_input = transformers_files.ModelInput(
            {role: token for role, token in chosen.items() if token is not None},
            known.max_length if model_max_length is None else model_max_length,
            templates,
        )
        for role, token in model_input.roles.items():
            if role not in roles and token not in self.special_tokens:
                raise UsageError(
                    f"is {shortened(token)} in the files beside the tokenizer, which has no such "
                    f"special token",
                    (role,),
                    f"give another one, or in Python {role}=None to leave it out",
                )
        beside = transformers_files.written_beside(self._spec, model_input)
        return {transformers_files.TOKENIZER_FILE: self.json_bytes, **beside}

    def vocab_json(self) -> bytes:
        """Return the model's vocabulary as GPT-2's `vocab.json`."""
        from bpe_beam.tokenizer.files import vocab_files

        return vocab_files.vocab_json(self._spec.model)

    def merges_txt(self) -> bytes:
        """Return the model's merges as GPT-2's `merges.txt`.

        Raises:
            UsageError: The model has no merges, or one that the file cannot represent.
        """
        from bpe_beam.tokenizer.files import vocab_files

        return vocab_files.merges_txt(self._spec.model)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the tokenizer's file, in hex: equal for equal tokenizers."""
        import hashlib

        return hashlib.sha256(self.json_bytes).hexdigest()

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[TokenizerSpec, ModelInput]]:
        """Pickles as its spec and its roles, without the native encoder."""
        return Tokenizer, (self._spec, self.model_input)

    def __copy__(self) -> Tokenizer:
        """Return the tokenizer itself, which never changes."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tokenizer:
        return self

    def __eq__(self, other: object) -> bool:
        """Whether both have the same fingerprint, and so the same file."""
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __len__(self) -> int:
        """The number of tokens, `vocab_size`."""
        return self.vocab_size

    def __repr__(self) -> str:
        kind = "byte-level BPE" if self._spec.model_reads_bytes else self._spec.model.json_type
        return (
            f"<Tokenizer: {kind}, {self.vocab_size} tokens, "
            f"{len(self._added.specials)} special, fingerprint {self.fingerprint[:12]}>"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from bpe_beam.tokenizer.display import as_html

        return as_html(self._spec, self.vocab_size, self.fingerprint)

    # ---- its values ----

    @property
    def spec(self) -> TokenizerSpec:
        """The components of the tokenizer."""
        return self._spec

    @cached_property
    def _vocab(self) -> dict[str, int]:
        return {**self._spec.model.vocab, **self._added.ids}

    @property
    def vocab(self) -> dict[str, int]:
        """A copy of the vocabulary: id by token, added tokens included."""
        return dict(self._vocab)

    @property
    def merges(self) -> list[tuple[str, str]]:
        """A copy of the merges: pairs of tokens by rank; empty if the model is not BPE."""
        return list(self._spec.model.merges) if isinstance(self._spec.model, BPE) else []

    @property
    def special_tokens(self) -> dict[str, int]:
        """A copy of the special tokens: id by token, in the order of ids."""
        return dict(self._added.specials)

    @cached_property
    def model_input(self) -> ModelInput:
        """The roles of special tokens, the length of the model's input, and chat templates."""
        from bpe_beam.tokenizer.files.transformers_files import ModelInput

        source = self._source_of_input
        return source() if callable(source) else source or ModelInput()

    @property
    def roles(self) -> dict[str, str]:
        """The special tokens that have a role, by its name, such as `eos_token`.

        They are those of `train`, of the files beside the one that was read, and of the unknown
        token and the padding of `tokenizer.json`.
        """
        from bpe_beam.tokenizer.files.transformers_files import roles_of

        return roles_of(self._spec, self.model_input)

    @property
    def model_max_length(self) -> int | None:
        """The most tokens of the model's input, by the files beside the tokenizer; None: any."""
        return self.model_input.max_length

    @property
    def chat_template(self) -> str | None:
        """The Jinja template of conversations, by the files beside the tokenizer; None: none."""
        return self.model_input.chat_templates.get("default")

    @property
    def vocab_size(self) -> int:
        """The number of tokens, as Hugging Face counts them; see `max_id` for array widths."""
        return len(self._vocab)

    @cached_property
    def max_id(self) -> int:
        """The greatest id: `vocab_size` - 1, or more if ids have holes; -1 without tokens."""
        return max(self._vocab.values(), default=-1)

    @property
    def holds_gil(self) -> bool:
        """Whether encoding needs the GIL: where a pattern has no native scanner."""
        return holds_gil(self.spec.normalizer, self.spec.pre_tokenizer)

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token, or None."""
        return self._vocab.get(token)

    def id_to_token(self, token_id: int) -> str | None:
        """Return the token of an id, or None."""
        return self._tokens.get(token_id)

    @cached_property
    def _tokens(self) -> dict[int, str]:
        tokens = {token_id: token for token, token_id in self._vocab.items()}
        model = self._spec.model
        if isinstance(model, Unigram) and len(tokens) < len(model.pieces):
            # Of equal pieces all but the last; the unknown one may be among them.
            tokens = {number: piece for number, (piece, _) in enumerate(model.pieces)} | tokens
        return tokens

    # ---- text to ids ----

    def encode(
        self,
        text: str,
        *,
        allowed_special: str | Collection[str] = (),
        disallowed_special: str = "text",
        add_special_tokens: bool = False,
    ) -> list[int]:
        """Return the ids of a text.

        Args:
            text: Any text without lone surrogates.
            allowed_special: The special tokens that are recognized in the text: "all", or a
                collection of them.
            disallowed_special: How other special tokens in the text are treated: "text" encodes
                them as plain text, "error" refuses the text.
            add_special_tokens: Whether to add the special tokens of the file's post-processor,
                such as the beginning of a text.

        Returns:
            The ids.

        Raises:
            UsageError: An argument is invalid.
            DataError: The text has a lone surrogate, a byte that is not in the vocabulary, or a
                refused special token; the message has the position in characters.
        """
        rules = self._encoder.rules(allowed_special, disallowed_special)
        ids = self._encoder.encode(text_input.to_utf8(text), rules)
        before, after = self._frame(add_special_tokens)
        return [*before, *ids, *after] if before or after else ids

    def encode_batch(
        self,
        texts: Sequence[str] | pa.Array | pa.ChunkedArray,
        *,
        allowed_special: str | Collection[str] = (),
        disallowed_special: str = "text",
        add_special_tokens: bool = False,
        output: Output = "lists",
    ) -> Any:
        """Return the ids of many texts; other threads run meanwhile.

        Args:
            texts: A sequence of str, or Arrow strings (string, large_string, string_view; chunked
                or not) without nulls.
            allowed_special: As in `encode`.
            disallowed_special: As in `encode`.
            add_special_tokens: As in `encode`.
            output: The form of the result, see below.

        Returns:
            The ids of each text: with "lists" a list of lists of int, which all programs take, at
            36 bytes an id; with "arrow" a pyarrow.LargeListArray of uint32, which is the fastest;
            with "numpy" a list of uint32 arrays over the same memory.

        Raises:
            UsageError: An argument is invalid, or the texts have another type.
            DataError: As in `encode`, or the Arrow data has a null or invalid UTF-8; the message
                has the number of the text, from 0, and the position.
        """
        from bpe_beam.tokenizer.components.postprocessors import framed
        from bpe_beam.tokenizer.encoding.batch_output import check_output, lists_as

        check_output(output)
        rules = self._encoder.rules(allowed_special, disallowed_special)

        ids = self._encoder.encode_batch(texts, rules)
        return lists_as(framed(ids, *self._frame(add_special_tokens)), output)

    def clear_cache(self) -> None:
        """Free the memory of words encoded before: up to 64 MB for each thread that encoded.

        Results stay the same; the next texts are encoded more slowly at first.
        """
        if "_encoder" in vars(self):
            self._encoder.clear_cache()

    def encode_padded(
        self,
        texts: Sequence[str] | pa.Array | pa.ChunkedArray,
        *,
        pad_id: int,
        max_length: int | None = None,
        allowed_special: str | Collection[str] = (),
        disallowed_special: str = "text",
        add_special_tokens: bool = False,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
        """Return the ids of many texts as the rows of one matrix, padded at their ends.

        Args:
            texts: As in `encode_batch`.
            pad_id: The id that fills shorter rows, such as `token_to_id("[PAD]")`.
            max_length: The most ids of a row, added special tokens included; longer texts lose
                their ends. None: the longest text decides.
            allowed_special: As in `encode`.
            disallowed_special: As in `encode`.
            add_special_tokens: As in `encode`.

        Returns:
            uint32[texts, length], and bool[texts, length], an attention mask: false for padding.

        Raises:
            UsageError: As in `encode_batch`, or `max_length` has no room for the special tokens.
            DataError: As in `encode_batch`.
        """
        rules = self._encoder.rules(allowed_special, disallowed_special)
        from bpe_beam.tokenizer.encoding.batch_output import padded

        ids = self._encoder.encode_batch(texts, rules)
        return padded(ids, *self._frame(add_special_tokens), pad_id, max_length)

    def encode_iterable(
        self,
        chunks: Iterable[str],
        *,
        allowed_special: str | Collection[str] = (),
        disallowed_special: str = "text",
        add_special_tokens: bool = False,
    ) -> Iterator[int]:
        """Return the ids of a text in chunks, lazily, as if the chunks were joined.

        Chunks may end anywhere, also within a word or a special token. Memory is bounded by some
        tens of KB, the longest chunk, and a few times the longest word (a million equal letters are
        one word). The whole text is kept in memory where no safe boundary between words is known:
        with a normalizer, with a pre-tokenizer that is not one native scanner, or with added tokens
        that strip, match single words only, or are found in normalized text.

        Args:
            chunks: The chunks of the text, in order.
            allowed_special: As in `encode`.
            disallowed_special: As in `encode`.
            add_special_tokens: As in `encode`.

        Yields:
            The ids, one by one: those of `encode("".join(chunks))`.

        Raises:
            UsageError: An argument is invalid, or a chunk is not a str.
            DataError: As in `encode`; the position is that in the whole text.
        """
        rules = self._encoder.rules(allowed_special, disallowed_special)
        before, after = self._frame(add_special_tokens)
        ids = self._encoder.encode_chunks(chunks, rules)
        return chain(before, ids, after) if before or after else ids

    def encode_with_offsets(
        self,
        text: str,
        *,
        allowed_special: str | Collection[str] = (),
        disallowed_special: str = "text",
        add_special_tokens: bool = False,
    ) -> tuple[list[str], list[int], list[tuple[int, int]]]:
        """Return the tokens and ids of a text, with the offsets of each token.

        Args:
            text: As in `encode`.
            allowed_special: As in `encode`.
            disallowed_special: As in `encode`.
            add_special_tokens: As in `encode`.

        Returns:
            Tokens, ids, and offsets (start, end) in characters of the text. A character whose bytes
            belong to two tokens is in both. Spaces are excluded if the post-processor trims them.

        Raises:
            UsageError: As in `encode`.
            DataError: As in `encode`.
        """
        rules = self._encoder.rules(allowed_special, disallowed_special)
        ids, offsets, found = self._encoder.encode_with_offsets(text_input.to_utf8(text), rules)
        tokens = [self._tokens[token_id] for token_id in ids]
        post_processor = self._spec.post_processor
        if post_processor is None:
            return tokens, ids, offsets
        with deadline_of(len(text)):
            # An added token by the text that matched, with its spaces; by its name where the model
            # gave it, as it does for the unknown token and the tokens of bytes.
            named = [
                text[slice(*offset)] if index in found else token
                for index, (token, offset) in enumerate(zip(tokens, offsets, strict=True))
            ]
            offsets = [
                post_processor.trim(index, name, offset)
                for index, (name, offset) in enumerate(zip(named, offsets, strict=True))
            ]
        before, after = post_processor.frame() if add_special_tokens else ([], [])
        return (
            [*(t for t, _ in before), *tokens, *(t for t, _ in after)],
            [*(i for _, i in before), *ids, *(i for _, i in after)],
            [*((0, 0) for _ in before), *offsets, *((0, 0) for _ in after)],
        )

    # ---- ids to text ----

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """Return the text of ids; bytes that are not UTF-8 become U+FFFD, as Python replaces them.

        The decoder in the file is applied. Without one, the result is the tokens with spaces
        between them.

        Args:
            ids: Integers, also as a NumPy or Arrow array.
            skip_special_tokens: Whether to ignore special tokens.

        Raises:
            UsageError: A value is not an integer.
            DataError: The tokenizer does not have an id; the message has its number.
        """
        skipped = self._skipped(skip_special_tokens)
        return self._decoder.decode(ids, skipped, lossy=True).decode("utf-8", errors="replace")

    def decode_bytes(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> bytes:
        """Return the bytes of ids, which need not be UTF-8.

        Args:
            ids: As in `decode`.
            skip_special_tokens: As in `decode`.

        Raises:
            UsageError: As in `decode`.
            DataError: As in `decode`.
        """
        return self._decoder.decode(ids, self._skipped(skip_special_tokens), lossy=False)

    def decode_batch(
        self,
        ids: Sequence[Iterable[int]] | pa.Array | pa.ChunkedArray,
        *,
        skip_special_tokens: bool = False,
        output: Output = "lists",
    ) -> Any:
        """Return the texts of the ids of many texts; each is what `decode` returns.

        Args:
            ids: The ids of each text: a sequence of lists or NumPy arrays, or Arrow lists, in any
                form that `encode_batch` returns.
            skip_special_tokens: Whether to ignore special tokens.
            output: The form of the result, see below.

        Returns:
            With "lists" a list of str, with "arrow" a pyarrow.LargeStringArray, with "numpy" an
            array of str (of type object).

        Raises:
            UsageError: A value is not an integer, or there is no such output.
            DataError: The tokenizer does not have an id; the message has the number of the text,
                from 0, and the number of the id.
        """
        from bpe_beam.tokenizer.encoding.batch_output import check_output, texts_as

        check_output(output)
        texts = self._decoder.decode_texts(ids, self._skipped(skip_special_tokens))
        return texts_as(texts, output)

    def decode_bytes_batch(
        self,
        ids: Sequence[Iterable[int]] | pa.Array | pa.ChunkedArray,
        *,
        skip_special_tokens: bool = False,
        output: Output = "lists",
    ) -> Any:
        """Return the bytes of the ids of many texts; each is what `decode_bytes` returns.

        Args:
            ids: As in `decode_batch`.
            skip_special_tokens: As in `decode_batch`.
            output: The form of the result, see below.

        Returns:
            As `decode_batch`, with bytes in place of str: with "arrow" a pyarrow.LargeBinaryArray.

        Raises:
            UsageError: As in `decode_batch`.
            DataError: As in `decode_batch`.
        """
        from bpe_beam.tokenizer.encoding.batch_output import check_output, texts_as

        check_output(output)
        return texts_as(self._decoder.decode_batch(ids, self._skipped(skip_special_tokens)), output)

    # ---- what it does to texts ----

    def evaluate(
        self,
        texts_or_counts: TextsOrCounts,
        *,
        vocab_sizes: Sequence[int | str] | int | str = (),
        pretokenizer: str = "gpt2",
        parallel: str | None = None,
        storage: Storage | None = None,
    ) -> dict[str, Any]:
        """Return figures of the tokenizer: tokens a word, words kept whole, unused tokens.

        Args:
            texts_or_counts: Texts: an iterable of str, of bytes in UTF-8, or of lists of them;
                Arrow strings. A mapping of names to such texts has sources, whose figures are
                wanted too. Counts: what `bpe_beam.count` returned; or the path or URL of a folder
                that `bpe-beam count` wrote.
            vocab_sizes: Sizes of smaller vocabularies whose figures are wanted too, for BPE, such
                as `[16000, "32k"]`.
            pretokenizer: The pre-tokenizer, by name, whose words are counted; only for texts.
            parallel: The source that the tokens of all are compared with, if the sources are
                translations of one text; None: they are not.
            storage: The storage client; None: one without options.

        Returns:
            The report of one tokenizer, as `bpe-beam evaluate` writes it: under `figures` those of
            the whole vocabulary, under `curve` a list of those of smaller sizes, each with
            `vocab_size`, `total`, `sources` and `fairness`. docs/evaluate.md defines them.

        Raises:
            UsageError: An argument is invalid, the tokenizer has no vocabulary of a size, or there
                is no source of the name.
            DataError: A text is not UTF-8, the vocabulary lacks a symbol of a word, or the counts
                are damaged.
        """
        from bpe_beam.api import evaluate

        options = {
            "vocab_sizes": vocab_sizes,
            "pretokenizer": pretokenizer,
            "parallel": parallel,
        }
        return evaluate.figures_of(self, texts_or_counts, options, storage)

    def _skipped(self, skip_special_tokens: bool) -> frozenset[int]:
        return frozenset(self._added.specials.values() if skip_special_tokens else ())

    @cached_property
    def _decoder(self) -> IdDecoder:
        from bpe_beam.tokenizer.encoding.id_decoder import IdDecoder

        return IdDecoder(self._spec, self._tokens)

    @cached_property
    def _encoder(self) -> TextEncoder:
        return TextEncoder(self._spec, self._added)

    def words_encoder(self, spec: TokenizerSpec) -> TextEncoder:
        """Return an encoder of other settings without added tokens.

        Its native model is that of this tokenizer, if the settings have the same.

        :meta private:

        Args:
            spec: The settings.
        """
        return TextEncoder(spec, AddedTokens(()), like=self._encoder)

    def _frame(self, add_special_tokens: bool) -> tuple[list[int], list[int]]:
        """Return the ids that the post-processor adds before and after a text."""
        if not add_special_tokens or self._spec.post_processor is None:
            return [], []
        before, after = self._spec.post_processor.frame()
        return [token_id for _, token_id in before], [token_id for _, token_id in after]


def _reader_beside(path: PathName, storage: Storage | None) -> Callable[[], ModelInput]:
    """Return a function that reads what the files beside a tokenizer's file tell."""

    def read() -> ModelInput:
        from bpe_beam.storage import Storage, path_name
        from bpe_beam.tokenizer.files.transformers_files import read_model_input

        return read_model_input(path_name(path), storage or Storage())

    return read

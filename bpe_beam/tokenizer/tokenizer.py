"""`Tokenizer`: made from files of every kind, and written to them.

Its values, and its work on texts, are in `text_codec.py`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.models import BPE, OF_ARGUMENTS
from bpe_beam.tokenizer.files import tokenizer_json
from bpe_beam.tokenizer.spec import TokenizerSpec, byte_level_spec
from bpe_beam.tokenizer.text_codec import TextCodec

# Modules for other files, for batches and for fingerprints are imported where they are used: most
# processes load one `tokenizer.json`, and start faster without them.
if TYPE_CHECKING:
    from bpe_beam.storage import PathName, Storage
    from bpe_beam.tokenizer.files.transformers_files import ModelInput


class Tokenizer(TextCodec):
    """A tokenizer, made by one of the `from_...` methods. Immutable; threads may share it.

    `bos_token`, `eos_token`, `pad_token`, `sep_token`, `cls_token`, `mask_token` and `unk_token`
    are the special tokens of these roles or None, and `bos_token_id` and so on their ids.
    """

    @classmethod
    def from_file(cls, path: PathName, *, storage: Storage | None = None) -> Tokenizer:
        """Return the tokenizer in a `tokenizer.json`, a SentencePiece `.model` or a `tekken.json`.

        The roles of special tokens, the length of the model's input and chat templates come from
        the files next to it, which are read when they are first needed.

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
        model_input = _reader_beside(path, storage)
        beginning = data[:4096]
        if beginning[:1] == b"\n" and b"\0" in beginning:  # messages begin so, and no JSON
            from bpe_beam.tokenizer.files import sentencepiece_file

            return cls(sentencepiece_file.read(data, source), model_input)
        if re.search(rb'"token_bytes"\s*:\s*"', beginning):
            from bpe_beam.tokenizer.files import tekken_file

            return cls(tekken_file.read(data, source), model_input)
        return cls(tokenizer_json.read(data, source), model_input)

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
        `merges.txt`, or `vocab.txt`, with the special tokens of the files next to them. A warning
        tells of files next to a `tokenizer.json` that say other things of its added tokens.

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
            pretokenizer: Name of the pre-tokenizer, as on the command line. None: the one of a file
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
                f"{source} does not have the pattern that splits texts, and the one of cl100k is "
                "used: other patterns give other ids. Pass pretokenizer=NAME, such as "
                'pretokenizer="cl100k"',
                stacklevel=2,
            )
        return cls(spec)

    @classmethod
    def from_sentencepiece(cls, path: PathName, *, storage: Storage | None = None) -> Tokenizer:
        """Return the tokenizer in a `.model` file of SentencePiece: BPE or Unigram.

        Its ids equal SentencePiece's. Control symbols are special tokens: they are recognized
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
        here is the tokenizer's: of its `train`, or of the files next to the one that it was
        read from.

        Args:
            folder: A path or any URL that fsspec opens.
            model_max_length: The most tokens of the model's input, at least 1; None: the one of the
                tokenizer, or no limit.
            chat_template: The Jinja template of conversations; None: the tokenizer's.
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
            model_max_length, chat_template, roles: As in `save_pretrained`.

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
                    f"is {shortened(token)} in the files next to the tokenizer, which has no such "
                    f"special token",
                    (role,),
                    f"give another one, or in Python {role}=None to leave it out",
                )
        others = transformers_files.written_beside(self._spec, model_input)
        return {transformers_files.TOKENIZER_FILE: self.json_bytes, **others}

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
                None: the one of the tokenizer's `roles`.
            eos_token: The special token that ends a text.
            pad_token: The special token that fills up short texts.
            storage: The storage client; None: one without options.

        Raises:
            UsageError: The file cannot represent this tokenizer; the message has the reason.
        """
        from bpe_beam.storage import Storage, path_name
        from bpe_beam.tokenizer.files import sentencepiece_file

        named = {"bos_token": bos_token, "eos_token": eos_token, "pad_token": pad_token}
        roles = {role: self.roles[role] for role in named if role in self.roles}
        roles |= {role: token for role, token in named.items() if token is not None}
        data = sentencepiece_file.write(self._spec, roles)
        (storage or Storage()).write_bytes(path_name(path), data)

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

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[TokenizerSpec, ModelInput]]:
        """Pickles as its spec and its roles, without the native encoder."""
        return Tokenizer, (self._spec, self.model_input)

    def __copy__(self) -> Tokenizer:
        """Return the tokenizer itself, which never changes."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tokenizer:
        return self


def _reader_beside(path: PathName, storage: Storage | None) -> Callable[[], ModelInput]:
    """Return a function that reads what the files next to a tokenizer's file tell."""

    def read() -> ModelInput:
        from bpe_beam.storage import Storage, path_name
        from bpe_beam.tokenizer.files.published_folder import read_model_input

        return read_model_input(path_name(path), storage or Storage())

    return read

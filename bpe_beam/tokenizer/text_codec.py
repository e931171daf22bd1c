"""The values of a tokenizer, and text to ids and back.

Native code encodes. This class checks arguments, passes UTF-8 on, and adds positions to errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from bpe_beam.errors import UsageError, require_choice
from bpe_beam.tokenizer import text_input
from bpe_beam.tokenizer.components.added_tokens import AddedTokens
from bpe_beam.tokenizer.components.models import BPE, Unigram
from bpe_beam.tokenizer.deadline import deadline_of
from bpe_beam.tokenizer.encoding.native_encoder import holds_gil
from bpe_beam.tokenizer.encoding.text_encoder import TextEncoder
from bpe_beam.tokenizer.files import hugging_face_ids, tokenizer_json
from bpe_beam.tokenizer.spec import TokenizerSpec

# Modules for batches are imported where they are used: processes that encode single texts start
# faster without them.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from bpe_beam.tokenizer.encoding.batch_output import Output
    from bpe_beam.tokenizer.encoding.id_decoder import IdDecoder
    from bpe_beam.tokenizer.files.transformers_files import ModelInput


class _Role:
    """A property of a tokenizer: the special token of a role, such as `eos_token`."""

    def __set_name__(self, owner: type[TextCodec], name: str) -> None:
        self._role = name

    def __get__(self, tokenizer: TextCodec | None, owner: object) -> str | None:
        return None if tokenizer is None else tokenizer.roles.get(self._role)


class _RoleId(_Role):
    """A property of a tokenizer: the id of the special token of a role, such as `eos_token_id`."""

    def __get__(self, tokenizer: Any, owner: object) -> Any:
        if tokenizer is None:
            return None
        return tokenizer.token_to_id(tokenizer.roles.get(self._role.removesuffix("_id")))


class TextCodec:
    """The values of a tokenizer, and its encoding of texts and decoding of ids."""

    bos_token, bos_token_id = _Role(), _RoleId()
    eos_token, eos_token_id = _Role(), _RoleId()
    pad_token, pad_token_id = _Role(), _RoleId()
    sep_token, sep_token_id = _Role(), _RoleId()
    cls_token, cls_token_id = _Role(), _RoleId()
    mask_token, mask_token_id = _Role(), _RoleId()
    unk_token, unk_token_id = _Role(), _RoleId()

    def __init__(
        self, spec: TokenizerSpec, model_input: ModelInput | Callable[[], ModelInput] | None = None
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

        They come from `train`, from the files next to the one that was read, and from the unknown
        token and the padding of `tokenizer.json`.
        """
        from bpe_beam.tokenizer.files.transformers_files import roles_of

        return roles_of(self._spec, self.model_input)

    @property
    def model_max_length(self) -> int | None:
        """The most tokens of the model's input, by the files next to the tokenizer; None: any."""
        return self.model_input.max_length

    @property
    def chat_template(self) -> str | None:
        """The Jinja template of conversations, by the files next to the tokenizer; None: none."""
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

    def to_json(self) -> str:
        """Return the text of the tokenizer's `tokenizer.json`; equal tokenizers give equal text."""
        return self.json_bytes.decode()

    @cached_property
    def json_bytes(self) -> bytes:
        """The bytes of the tokenizer's `tokenizer.json`."""
        return tokenizer_json.write(self._spec)

    @property
    def file_warning(self) -> str | None:
        """What to tell users of a written `tokenizer.json`; None: nothing."""
        return hugging_face_ids.file_warning(self._spec)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the tokenizer's file, in hex: equal for equal tokenizers."""
        import hashlib

        return hashlib.sha256(self.json_bytes).hexdigest()

    def __eq__(self, other: object) -> bool:
        """Whether both have the same fingerprint, and so the same file."""
        if not isinstance(other, TextCodec):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __len__(self) -> int:
        """The number of tokens, `vocab_size`."""
        return self.vocab_size

    def __repr__(self) -> str:
        return (
            f"<Tokenizer: {self._spec.model_kind}, {self.vocab_size} tokens, "
            f"{len(self._added.specials)} special, fingerprint {self.fingerprint[:12]}>"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from bpe_beam.tokenizer.display import as_html

        return as_html(self._spec, self.vocab_size, self.fingerprint)

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
            allowed_special, disallowed_special, add_special_tokens: As in `encode`.
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
        from bpe_beam.tokenizer.encoding.batch_output import OUTPUTS, framed, lists_as

        require_choice("output", output, OUTPUTS)
        rules = self._encoder.rules(allowed_special, disallowed_special)
        ids = self._encoder.encode_batch(texts, rules)
        return lists_as(framed(ids, *self._frame(add_special_tokens)), output)

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
            allowed_special, disallowed_special, add_special_tokens: As in `encode`.

        Returns:
            uint32[texts, length], and bool[texts, length], an attention mask: false for padding.

        Raises:
            UsageError: As in `encode_batch`, or `max_length` has no room for the special tokens.
            DataError: As in `encode_batch`.
        """
        from bpe_beam.tokenizer.encoding.batch_output import padded

        rules = self._encoder.rules(allowed_special, disallowed_special)
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
            allowed_special, disallowed_special, add_special_tokens: As in `encode`.

        Yields:
            The ids, one by one, equal to `encode("".join(chunks))`.

        Raises:
            UsageError: An argument is invalid, or a chunk is not a str.
            DataError: As in `encode`; the position is that in the whole text.
        """
        rules = self._encoder.rules(allowed_special, disallowed_special)
        if isinstance(chunks, (str, bytes)):
            raise UsageError("chunks must be a sequence of texts, got a single text; use encode")
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
            text, allowed_special, disallowed_special, add_special_tokens: As in `encode`.

        Returns:
            Tokens, ids, and offsets (start, end) in characters of the text. A character whose bytes
            belong to two tokens is in both. Spaces are excluded if the post-processor trims them.

        Raises:
            UsageError, DataError: As in `encode`.
        """
        rules = self._encoder.rules(allowed_special, disallowed_special)
        ids, offsets, matched = self._encoder.encode_with_offsets(text_input.to_utf8(text), rules)
        tokens = [self._tokens[token_id] for token_id in ids]
        post_processor = self._spec.post_processor
        if post_processor is None:
            return tokens, ids, offsets
        with deadline_of(len(text)):
            # An added token by the text that matched, with its spaces; by its name where the model
            # gave it, as it does for the unknown token and the tokens of bytes.
            named = [
                text[slice(*offset)] if index in matched else token
                for index, (token, offset) in enumerate(zip(tokens, offsets, strict=True))
            ]
            offsets = [
                post_processor.trim(index, name, offset)
                for index, (name, offset) in enumerate(zip(named, offsets, strict=True))
            ]
        before, after = post_processor.frame() if add_special_tokens else ([], [])
        return (
            [*(token for token, _ in before), *tokens, *(token for token, _ in after)],
            [*(token_id for _, token_id in before), *ids, *(token_id for _, token_id in after)],
            [(0, 0)] * len(before) + offsets + [(0, 0)] * len(after),
        )

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
            ids, skip_special_tokens: As in `decode`.

        Raises:
            UsageError, DataError: As in `decode`.
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
        from bpe_beam.tokenizer.encoding.batch_output import OUTPUTS, texts_as

        require_choice("output", output, OUTPUTS)
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
            ids, skip_special_tokens: As in `decode_batch`.
            output: The form of the result, see below.

        Returns:
            As `decode_batch`, with bytes in place of str: with "arrow" a pyarrow.LargeBinaryArray.

        Raises:
            UsageError, DataError: As in `decode_batch`.
        """
        from bpe_beam.tokenizer.encoding.batch_output import OUTPUTS, texts_as

        require_choice("output", output, OUTPUTS)
        return texts_as(self._decoder.decode_batch(ids, self._skipped(skip_special_tokens)), output)

    def clear_cache(self) -> None:
        """Free the memory of words encoded before: up to 64 MB for each thread that encoded.

        Results stay the same; the next texts are encoded more slowly at first.
        """
        if "_encoder" in vars(self):
            self._encoder.clear_cache()

    def words_encoder(self, spec: TokenizerSpec) -> TextEncoder:
        """Return an encoder of other settings without added tokens.

        It shares the native model of this tokenizer, if the settings have the same.

        :meta private:
        """
        return TextEncoder(spec, AddedTokens(()), like=self._encoder)

    def _skipped(self, skip_special_tokens: bool) -> frozenset[int]:
        return frozenset(self._added.specials.values() if skip_special_tokens else ())

    @cached_property
    def _decoder(self) -> IdDecoder:
        from bpe_beam.tokenizer.encoding.id_decoder import IdDecoder

        return IdDecoder(self._spec, self._tokens)

    @cached_property
    def _encoder(self) -> TextEncoder:
        return TextEncoder(self._spec, self._added)

    def _frame(self, add_special_tokens: bool) -> tuple[list[int], list[int]]:
        """Return the ids that the post-processor adds before and after a text."""
        if not add_special_tokens or self._spec.post_processor is None:
            return [], []
        before, after = self._spec.post_processor.frame()
        return [token_id for _, token_id in before], [token_id for _, token_id in after]

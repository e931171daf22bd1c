"""Tokenizer: text to ids and back.

The parts say what to do, the native encoder does it; this class checks what comes in, hands bytes
over, and names faults by their place. Python touches no character of the text on the way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING

from bpe_beam.tokenizer import text_input, tokenizer_json
from bpe_beam.tokenizer.added_tokens import AddedTokens
from bpe_beam.tokenizer.deadline import deadline_of
from bpe_beam.tokenizer.id_decoder import IdDecoder
from bpe_beam.tokenizer.models import BPE
from bpe_beam.tokenizer.native_encoder import holds_gil
from bpe_beam.tokenizer.spec import TokenizerSpec, from_learned
from bpe_beam.tokenizer.text_encoder import TextEncoder

# Other kinds of files, batches and fingerprints import their modules where they are used: most
# processes load one `tokenizer.json`, and start faster without them.
if TYPE_CHECKING:
    import pyarrow as pa

    from bpe_beam.storage import Storage

_IDS_AT_ONCE = 4096


class Tokenizer:
    """A tokenizer, made by one of the `from_...` methods. Immutable; threads may share it."""

    def __init__(self, spec: TokenizerSpec) -> None:
        """Takes parts that were checked; the `from_...` methods read and check them."""
        self._spec = spec
        self._added = AddedTokens(spec.added_tokens)

    # ---- making and keeping ----

    @classmethod
    def from_file(cls, path: str, *, storage: Storage | None = None) -> Tokenizer:
        """Reads a `tokenizer.json`.

        Args:
            path: A path or any URL that fsspec opens, of the file or of the folder that holds it.
            storage: How to open it; needed only for storage options.

        Raises:
            UsageError: There is no such file, or it is no tokenizer that this version supports;
                names the file, the JSON path, and what may stand there.
        """
        return cls(tokenizer_json.read(*tokenizer_json.read_file(path, storage)))

    @classmethod
    def from_json(cls, text: str | bytes) -> Tokenizer:
        """Reads the text of a `tokenizer.json`; raises UsageError as `from_file` does."""
        return cls(tokenizer_json.read(text, "tokenizer.json"))

    @classmethod
    def from_vocab_and_merges(
        cls,
        vocab_path: str,
        merges_path: str,
        special_tokens: Sequence[str] = (),
        *,
        storage: Storage | None = None,
    ) -> Tokenizer:
        """Reads GPT-2's pair of files, `vocab.json` and `merges.txt`.

        Args:
            vocab_path: A path or any URL that fsspec opens.
            merges_path: The same for the merges.
            special_tokens: The texts of the special tokens. Those that the vocabulary does not
                hold get the ids after its greatest, in this order.
            storage: How to open them; needed only for storage options.

        Raises:
            UsageError: A file is missing or broken, or the two do not fit; names the place.
        """
        from bpe_beam.tokenizer import vocab_files

        vocab, vocab_source = tokenizer_json.read_file(vocab_path, storage, "vocab.json")
        merges, merges_source = tokenizer_json.read_file(merges_path, storage, "merges.txt")
        return cls(
            vocab_files.read_vocab_and_merges(
                vocab,
                merges,
                special_tokens,
                vocab_source=vocab_source,
                merges_source=merges_source,
            )
        )

    @classmethod
    def from_tiktoken(
        cls,
        path: str,
        *,
        pretokenizer: str = "cl100k",
        special_tokens: Mapping[str, int] = MappingProxyType({}),
        storage: Storage | None = None,
    ) -> Tokenizer:
        """Reads a `.tiktoken` file: tokens and ranks, no more.

        Args:
            path: A path or any URL that fsspec opens.
            pretokenizer: How text is cut into words, by name as on the command line.
            special_tokens: Ids by special token.
            storage: How to open it; needed only for storage options.

        Raises:
            UsageError: The file is missing or broken, or a token does not fit; names the line.
        """
        from bpe_beam.tokenizer import tiktoken_file

        data, source = tokenizer_json.read_file(path, storage, ".tiktoken")
        return cls(
            tiktoken_file.read(
                data, source, pretokenizer=pretokenizer, special_tokens=special_tokens
            )
        )

    def save_tiktoken(self, path: str, *, storage: Storage | None = None) -> None:
        """Writes the model as a `.tiktoken` file, whole or not at all.

        Args:
            path: A path or any URL that fsspec opens.
            storage: How to open it; needed only for storage options.

        Raises:
            UsageError: The file cannot hold this tokenizer; says why.
        """
        from bpe_beam.storage import Storage
        from bpe_beam.tokenizer import tiktoken_file

        (storage or Storage()).write_bytes(path, tiktoken_file.write(self._spec))

    @classmethod
    def from_learned(
        cls,
        vocab: Sequence[str],
        merges: Sequence[tuple[str, str]],
        special_tokens: Sequence[str] = (),
    ) -> Tokenizer:
        """Makes a byte-level BPE tokenizer from what was learned.

        Args:
            vocab: Tokens in the byte-level alphabet and the special tokens, in order of ids.
            merges: Pairs of tokens by rank.
            special_tokens: Those of the vocabulary that are special.

        Raises:
            UsageError: A token stands twice, a merge's token is not in the vocabulary, or a
                special token is missing or cannot be told from a token of the model.
        """
        return cls(from_learned(vocab, merges, special_tokens))

    def to_json(self) -> str:
        """The text of the tokenizer's `tokenizer.json`; equal tokenizers give equal text."""
        return self._json

    @cached_property
    def _json(self) -> str:
        return tokenizer_json.write(self._spec)

    def save(self, path: str, *, storage: Storage | None = None) -> None:
        """Writes the tokenizer's `tokenizer.json`, whole or not at all.

        Args:
            path: A path or any URL that fsspec opens.
            storage: How to open it; needed only for storage options.
        """
        from bpe_beam.storage import Storage

        (storage or Storage()).write_bytes(path, self.to_json().encode())

    def vocab_json(self) -> bytes:
        """The model's vocabulary as GPT-2's `vocab.json`."""
        from bpe_beam.tokenizer import vocab_files

        return vocab_files.vocab_json(self._spec.model)

    def merges_txt(self) -> bytes:
        """The model's merges as GPT-2's `merges.txt`.

        Raises:
            UsageError: The model has no merges, or one that the file cannot hold.
        """
        from bpe_beam.tokenizer import vocab_files

        return vocab_files.merges_txt(self._spec.model)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of what the tokenizer's file says, in hex: equal for equal tokenizers."""
        import hashlib

        model = self._spec.model
        if isinstance(model, BPE) and model.rank_by_token:  # it has no file
            text = tokenizer_json.identity_by_ranks(self._spec, model)
        else:
            text = self.to_json()
        return hashlib.sha256(text.encode()).hexdigest()

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[TokenizerSpec]]:
        """Pickles as its spec, without the native encoder."""
        return Tokenizer, (self._spec,)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same fingerprint, that is, say the same in their files."""
        if not isinstance(other, Tokenizer):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __len__(self) -> int:
        """The number of tokens, `vocab_size`."""
        return self.vocab_size

    def __repr__(self) -> str:
        kind = "byte-level BPE" if self._spec.model_reads_bytes else self._spec.model.JSON_TYPE
        return (
            f"<Tokenizer: {kind}, {self.vocab_size} tokens, "
            f"{len(self._added.specials)} special, fingerprint {self.fingerprint[:12]}>"
        )

    # ---- looking at it ----

    @property
    def spec(self) -> TokenizerSpec:
        """What the tokenizer is made of."""
        return self._spec

    @cached_property
    def _vocab(self) -> dict[str, int]:
        return {**self._spec.model.vocab, **self._added.ids}

    @property
    def vocab(self) -> dict[str, int]:
        """Id by token, added tokens included: a copy."""
        return dict(self._vocab)

    @property
    def merges(self) -> list[tuple[str, str]]:
        """Pairs of tokens by rank: a copy; none if the model is not BPE."""
        return list(self._spec.model.merges) if isinstance(self._spec.model, BPE) else []

    @property
    def special_tokens(self) -> dict[str, int]:
        """Id by special token, in the order of ids: a copy."""
        return dict(self._added.specials)

    @property
    def vocab_size(self) -> int:
        """How many tokens there are, as Hugging Face counts; see `max_id` for array widths."""
        return len(self._vocab)

    @cached_property
    def max_id(self) -> int:
        """The greatest id: `vocab_size` - 1, or more if ids have holes; -1 if there is none."""
        return max(self._vocab.values(), default=-1)

    @property
    def holds_gil(self) -> bool:
        """Whether encoding holds Python's lock, so that threads of one process take turns: where a
        pattern has no scanner of ours."""
        return holds_gil(self.spec.normalizer, self.spec.pre_tokenizer)

    def token_to_id(self, token: str) -> int | None:
        """The id of a token, or None."""
        return self._vocab.get(token)

    def id_to_token(self, token_id: int) -> str | None:
        """The token of an id, or None."""
        return self._tokens.get(token_id)

    @cached_property
    def _tokens(self) -> dict[int, str]:
        return {token_id: token for token, token_id in self._vocab.items()}

    # ---- text to ids ----

    def encode(
        self,
        text: str,
        *,
        allowed_special: str | Collection[str] = (),
        disallowed_special: str = "text",
        add_special_tokens: bool = False,
    ) -> list[int]:
        """Encodes a text.

        Args:
            text: Any text without lone surrogates.
            allowed_special: Which special tokens count where they stand in the text: "all", or a
                collection of them.
            disallowed_special: What becomes of the others: "text" takes them as plain text,
                "error" refuses the text.
            add_special_tokens: Insert those that the file's post-processor inserts, such as the
                beginning of a text.

        Returns:
            The ids.

        Raises:
            UsageError: A setting that cannot be.
            DataError: A lone surrogate, a byte that the vocabulary lacks, or a special token that
                is refused; names the place in characters.
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
    ) -> pa.LargeListArray:
        """Encodes many texts in one call; other threads run meanwhile.

        Args:
            texts: A sequence of str, or Arrow strings (string, large_string, string_view; chunked
                or not) without nulls.
            allowed_special: As in `encode`.
            disallowed_special: As in `encode`.
            add_special_tokens: As in `encode`.

        Returns:
            A pyarrow.LargeListArray of uint32: the ids of each text.

        Raises:
            UsageError: A setting that cannot be, or texts of another type.
            DataError: As in `encode`, or a null or broken UTF-8 in the Arrow data; names the
                text's number, from 0, and the place.
        """
        rules = self._encoder.rules(allowed_special, disallowed_special)
        from bpe_beam.tokenizer import framing

        ids = self._encoder.encode_batch(texts, rules)
        return framing.framed(ids, *self._frame(add_special_tokens))

    def encode_iterable(
        self,
        chunks: Iterable[str],
        *,
        allowed_special: str | Collection[str] = (),
        disallowed_special: str = "text",
        add_special_tokens: bool = False,
    ) -> Iterator[int]:
        """Encodes a text that comes in chunks, lazily, as if they were joined.

        Chunks may end anywhere, also within a word or a special token. Memory is bounded by some
        tens of KB, the longest chunk, and a few times the longest word (a text without any
        place to cut, such as a million equal letters, is one word). Where no place to cut is known
        to be safe, the whole text is gathered: with a normalizer, with a pre-tokenizer that is not
        one native scanner, or with added tokens that strip, match single words only, or are found
        in normalized text.

        Args:
            chunks: Pieces of the text, in order.
            allowed_special: As in `encode`.
            disallowed_special: As in `encode`.
            add_special_tokens: As in `encode`.

        Yields:
            The ids, one by one: those of `encode("".join(chunks))`.

        Raises:
            UsageError: A setting that cannot be, or a chunk that is no str.
            DataError: As in `encode`; the place counts from the start of the first chunk.
        """
        rules = self._encoder.rules(allowed_special, disallowed_special)
        before, after = self._frame(add_special_tokens)
        ids = self._encoder.encode_pieces(chunks, rules)
        return chain(before, ids, after) if before or after else ids

    def encode_with_offsets(
        self,
        text: str,
        *,
        allowed_special: str | Collection[str] = (),
        disallowed_special: str = "text",
        add_special_tokens: bool = False,
    ) -> tuple[list[str], list[int], list[tuple[int, int]]]:
        """Encodes a text and tells where each token stands.

        Args:
            text: As in `encode`; so are the settings and errors.
            allowed_special: As in `encode`.
            disallowed_special: As in `encode`.
            add_special_tokens: As in `encode`.

        Returns:
            Tokens, ids, and offsets (start, end) in characters of the text. A character whose bytes
            two tokens share is in both. Spaces are left out if the post-processor trims them.
        """
        rules = self._encoder.rules(allowed_special, disallowed_special)
        ids, offsets, found = self._encoder.encode_placed(text_input.to_utf8(text), rules)
        tokens = [self._tokens[token_id] for token_id in ids]
        post_processor = self._spec.post_processor
        if post_processor is None:
            return tokens, ids, offsets
        with deadline_of(len(text)):
            # An added token as it was found, with the spaces that it took in; by its name where the
            # model gave it, as it does for the unknown token and those of bytes.
            named = [
                text[slice(*offset)] if place in found else token
                for place, (token, offset) in enumerate(zip(tokens, offsets, strict=True))
            ]
            offsets = [
                post_processor.trim(place, name, offset)
                for place, (name, offset) in enumerate(zip(named, offsets, strict=True))
            ]
        before, after = post_processor.frame() if add_special_tokens else ([], [])
        return (
            [*(t for t, _ in before), *tokens, *(t for t, _ in after)],
            [*(i for _, i in before), *ids, *(i for _, i in after)],
            [*((0, 0) for _ in before), *offsets, *((0, 0) for _ in after)],
        )

    # ---- ids to text ----

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """Decodes ids; bytes that are no UTF-8 become U+FFFD, as Python replaces them.

        The file's decoder is applied as it stands: where it is null, the result is the tokens
        with spaces between them.

        Args:
            ids: Any integers; a NumPy or Arrow array of them, too.
            skip_special_tokens: Leave special tokens out.

        Raises:
            DataError: An id that the tokenizer does not have; names it and its place.
        """
        left_out = self._left_out(skip_special_tokens)
        return self._decoder.decode(ids, left_out, lossy=True).decode("utf-8", errors="replace")

    def decode_bytes(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> bytes:
        """Decodes ids to the bytes that they stand for; arguments and errors as in `decode`."""
        return self._decoder.decode(ids, self._left_out(skip_special_tokens), lossy=False)

    def _left_out(self, skip_special_tokens: bool) -> Collection[int]:
        return frozenset(self._added.specials.values()) if skip_special_tokens else ()

    @cached_property
    def _decoder(self) -> IdDecoder:
        return IdDecoder(self._spec, self._tokens)

    @cached_property
    def _encoder(self) -> TextEncoder:
        return TextEncoder(self._spec, self._added)

    def _frame(self, add_special_tokens: bool) -> tuple[list[int], list[int]]:
        """The ids that the post-processor puts before and after a text."""
        if not add_special_tokens or self._spec.post_processor is None:
            return [], []
        before, after = self._spec.post_processor.frame()
        return [token_id for _, token_id in before], [token_id for _, token_id in after]

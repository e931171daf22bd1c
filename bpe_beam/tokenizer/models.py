"""Models: how the symbols of a word become tokens. Plain data; the native models do the work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar

from bpe_beam.errors import UsageError
from bpe_beam.limits import MAX_VOCAB_SIZE
from bpe_beam.messages import shortened
from bpe_beam.record import names_of, record

if TYPE_CHECKING:
    from bpe_beam import _native

MAX_ID = MAX_VOCAB_SIZE - 1
"""The greatest id: the formats that hold token ids have 31 bits for them."""

MAX_TOKEN_CHARS = 4_096
"""The longest added token, in characters: each is searched for at every position of a text.

A model's own tokens may be longer: a text with a long run of one letter makes them.
"""


MAX_CONTENT_CHARS = 1 << 23
"""Characters of all added tokens together, and of a WordPiece vocabulary: these are kept as a tree
of bytes, which takes 40 bytes of memory for each."""


@record
class ErrorLocation:
    """How to name the place of a fault; as paths in `tokenizer.json` unless told otherwise.

    Attributes:
        token: From a token of the vocabulary to its place.
        merge: From the rank of a merge to its place.
        added: From the number of an added token to its place.
        setting: From a field of the model to its place.
    """

    token: Callable[[str], str] = lambda token: f"model.vocab[{shortened(token)}]"
    merge: Callable[[int], str] = lambda rank: f"model.merges[{rank}]"
    added: Callable[[int], str] = lambda number: f"added_tokens[{number}]"
    setting: Callable[[str], str] = lambda name: f"model.{name}"


@record
class BPE:
    """Byte-pair encoding.

    Attributes:
        vocab: Id by token, in the order of ids. Ids may have holes.
        merges: Pairs of tokens by rank; a pair listed twice has its last rank.
        unk_token: What a symbol outside the vocabulary becomes; None: such a text is refused.
        continuing_subword_prefix: Stands before every symbol of a word but the first.
        end_of_word_suffix: Stands after a word's last symbol.
        fuse_unk: Unknown neighbours within a word become one token.
        byte_fallback: A character outside the vocabulary becomes the tokens `<0x00>` to `<0xFF>`
            of its bytes, if the vocabulary has them all.
        ignore_merges: A word that is a token is one, whatever the merges say.
        rank_by_token: All pairs that make one token share its rank, as in files that hold ranks
            only; `tokenizer.json` cannot say so. The merges of one token then stand together.
    """

    JSON_TYPE: ClassVar[str] = "BPE"

    vocab: Mapping[str, int]
    merges: Sequence[tuple[str, str]]
    unk_token: str | None = None
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    fuse_unk: bool = False
    byte_fallback: bool = False
    ignore_merges: bool = False
    rank_by_token: bool = False

    def check(self, location: ErrorLocation) -> None:
        """Refuses a vocabulary or merges that cannot work.

        Args:
            location: How the message names the place.

        Raises:
            UsageError: Names the place, what stands there, and what may.
        """
        check_vocab(self.vocab, location)
        check_unknown(self.unk_token, self.vocab, location)
        rank = len(self.merge_ids)
        if rank < len(self.merges):
            left, right = self.merges[rank]
            parts = (left, right, self.joined(left, right))
            missing = next(token for token in parts if token not in self.vocab)
            raise UsageError(
                f"{location.merge(rank)}: {shortened(missing)} of {shortened([left, right])} is "
                "not in the vocabulary"
            )

    @cached_property
    def merge_ids(self) -> _native.MergeIds:
        """The merges as ids, up to the first of which a token is not in the vocabulary."""
        from bpe_beam import _native

        prefix = self.continuing_subword_prefix or ""
        return _native.MergeIds(as_dict(self.vocab), self.merges, prefix)

    def __getstate__(self) -> dict[str, object]:
        """Pickles the fields alone."""
        return {name: getattr(self, name) for name in names_of(self)}

    def joined(self, left: str, right: str) -> str:
        """The token that a merge of two makes: the right one's prefix is dropped."""
        return left + right.removeprefix(self.continuing_subword_prefix or "")


@record
class WordPiece:
    """From the left, the longest token that fits.

    Attributes:
        vocab: Id by token, in the order of ids. Ids may have holes.
        unk_token: What a word becomes that does not fall into tokens.
        continuing_subword_prefix: Stands before every token of a word but the first.
        max_input_chars_per_word: A longer word is unknown.
    """

    JSON_TYPE: ClassVar[str] = "WordPiece"

    vocab: Mapping[str, int]
    unk_token: str = "[UNK]"
    continuing_subword_prefix: str = "##"
    max_input_chars_per_word: int = 100

    def check(self, location: ErrorLocation) -> None:
        """Refuses a vocabulary that cannot work; see `BPE.check`."""
        check_vocab(self.vocab, location)
        if (characters := sum(map(len, self.vocab))) > MAX_CONTENT_CHARS:
            raise UsageError(
                f"{location.setting('vocab')}: its tokens must have at most {MAX_CONTENT_CHARS:,} "
                f"characters together, got {characters:,}"
            )
        most, place = self.max_input_chars_per_word, location.setting("max_input_chars_per_word")
        if most < 0:
            raise UsageError(f"{place}: {most} is below 0")
        # The time of a word is its length times the longest token that it can hold.
        if most > MAX_TOKEN_CHARS:
            for token in self.vocab:
                if len(token) > MAX_TOKEN_CHARS:
                    raise UsageError(
                        f"{location.token(token)}: a token of {len(token):,} characters must be at "
                        f"most {MAX_TOKEN_CHARS:,} where {place} is {most:,}: give a smaller one"
                    )


@record
class WordLevel:
    """A word is a token, or unknown.

    Attributes:
        vocab: Id by token, in the order of ids. Ids may have holes.
        unk_token: What a word outside the vocabulary becomes.
    """

    JSON_TYPE: ClassVar[str] = "WordLevel"

    vocab: Mapping[str, int]
    unk_token: str = "<unk>"

    def check(self, location: ErrorLocation) -> None:
        """Refuses a vocabulary that cannot work; see `BPE.check`."""
        check_vocab(self.vocab, location)


Model = BPE | WordPiece | WordLevel


def check_vocab(vocab: Mapping[str, int], location: ErrorLocation) -> None:
    """Refuses invalid ids, ids of two tokens, and an empty token.

    Raises:
        UsageError: Names the place.
    """
    if _is_plain(vocab):
        return
    tokens_by_id: dict[int, str] = {}
    for token, token_id in vocab.items():
        if type(token_id) is not int or not 0 <= token_id <= MAX_ID:
            check_id(token_id, location.token(token))
        other = tokens_by_id.setdefault(token_id, token)
        if other is not token:
            raise UsageError(
                f"{location.token(token)}: id {token_id} is taken by {shortened(other)}"
            )
        if not token:
            raise UsageError(f"{location.token(token)}: an empty token")


def _is_plain(vocab: Mapping[str, int]) -> bool:
    """Whether nothing is wrong, told without looking at entries one by one."""
    ids = vocab.values()
    if not vocab or {*map(type, ids)} != {int}:
        return False
    return "" not in vocab and min(ids) >= 0 and max(ids) <= MAX_ID and len({*ids}) == len(vocab)


def check_unknown(unk_token: str | None, vocab: Collection[str], location: ErrorLocation) -> None:
    """Refuses an unknown token that is not in the vocabulary.

    Raises:
        UsageError: Names the place.
    """
    if unk_token is not None and unk_token not in vocab:
        raise UsageError(
            f"{location.setting('unk_token')}: {shortened(unk_token)} is not in the vocabulary"
        )


def byte_token(byte: int) -> str:
    """The token that stands for a byte with `byte_fallback`: `<0x0A>` for a newline."""
    return f"<0x{byte:02X}>"


def in_order_of_ids(vocab: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sorts a vocabulary by id."""
    return dict(sorted(vocab, key=itemgetter(1)))


def as_dict(vocab: Mapping[str, int]) -> dict[str, int]:
    """The vocabulary as the native code takes it; itself if it is a dict."""
    return vocab if isinstance(vocab, dict) else dict(vocab)


def check_id(token_id: object, place: str) -> int:
    """Refuses what cannot be a token's id.

    Raises:
        UsageError: It is not an integer from 0 to MAX_ID; names the place.
    """
    if isinstance(token_id, bool) or not isinstance(token_id, int):
        raise UsageError(f"{place}: the id {shortened(token_id)} is not an integer")
    if not 0 <= token_id <= MAX_ID:
        raise UsageError(f"{place}: the id {shortened(token_id)} is not from 0 to {MAX_ID}")
    return token_id

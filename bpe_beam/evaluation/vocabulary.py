"""The tokens of a tokenizer: their bytes, scripts, positions in arrays."""

from __future__ import annotations

import codecs
import re
from functools import cached_property
from itertools import compress, pairwise

import numpy as np
import numpy.typing as npt

from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components import byte_level
from bpe_beam.tokenizer.components.models import BPE, SentencePiece, Unigram, WordPiece
from bpe_beam.tokenizer.tokenizer import Tokenizer

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SCRIPTS = (
    "Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Han", "Hiragana", "Katakana", "Hangul",
    "Thai", "Devanagari", "Bengali", "Tamil", "Telugu", "Kannada", "Malayalam", "Gujarati",
    "Gurmukhi", "Oriya", "Sinhala", "Khmer", "Lao", "Myanmar", "Tibetan", "Georgian", "Armenian",
    "Ethiopic", "Mongolian", "Syriac", "Thaana", "Cherokee", "Canadian_Aboriginal", "Bopomofo",
    "Tifinagh", "Nko", "Coptic", "Yi", "Javanese", "Balinese", "Ol_Chiki", "Vai",
)  # fmt: skip
"""The scripts that are named; letters of any other are of the script "other"."""

_ALPHABET_END = 0x200
"""A code point after all characters of the byte-level alphabet."""

_NO_BYTE = 256

_FEW_IDS = 1024

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class Vocabulary:
    """The tokens of a tokenizer in the order of their ids, as arrays need them.

    A token's position is the number of tokens with smaller ids. Without holes it is the id.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        vocab = tokenizer.vocab
        ids: Integers = np.fromiter(vocab.values(), np.int64, len(vocab))
        order = np.argsort(ids)
        self.ids: Integers = ids[order]
        tokens = list(vocab)
        self.tokens = [tokens[number] for number in order.tolist()]
        self.added: Flags = np.isin(self.ids, [token.id for token in tokenizer.spec.added_tokens])

    def __len__(self) -> int:
        return len(self.tokens)

    def positions(self, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.signedinteger]:
        """Return the positions of ids that the tokenizer has."""
        if len(self.position_of_id) == 0:
            return np.searchsorted(self.ids, ids)
        return self.position_of_id[ids]

    @cached_property
    def position_of_id(self) -> Integers:
        """int64[greatest id + 1], the position of each id; empty if most ids are unused."""
        last = self.tokenizer.max_id
        if last >= 2 * len(self) + _FEW_IDS:
            return np.empty(0, np.int64)
        positions = np.zeros(last + 1, np.int64)
        positions[self.ids] = np.arange(len(self))
        return positions

    @cached_property
    def position_of(self) -> dict[str, int]:
        """The position of each token."""
        return {token: position for position, token in enumerate(self.tokens)}

    @cached_property
    def unknown(self) -> int | None:
        """The position of the unknown token; None if the model has none."""
        model = self.tokenizer.spec.model
        if isinstance(model, Unigram):
            token = None if model.unk_id is None else self.tokenizer.id_to_token(model.unk_id)
        elif isinstance(model, SentencePiece):
            (token,) = model.of_kind("unknown")
        else:
            token = model.unk_token
        return None if token is None else self.position_of.get(token)

    @cached_property
    def token_bytes(self) -> list[bytes]:
        """The bytes of text of each token, without marks of the model such as `##`."""
        model = self.tokenizer.spec.model
        prefix = suffix = ""
        if isinstance(model, BPE | WordPiece):
            prefix = model.continuing_subword_prefix or ""
        if isinstance(model, BPE):
            suffix = model.end_of_word_suffix or ""
        fallback = isinstance(model, BPE | Unigram | SentencePiece) and model.byte_fallback

        def bytes_of(token: str, added: bool) -> bytes:
            if fallback and (match := _BYTE_TOKEN.fullmatch(token)):
                return bytes([int(match[1], 16)])
            if added:
                return token.encode()
            text = token.removeprefix(prefix).removesuffix(suffix) or token
            return text.replace("\u2581", " ").encode()

        if not self.tokenizer.spec.model_reads_bytes:
            return [*map(bytes_of, self.tokens, self.added.tolist())]
        token_bytes, in_alphabet = _bytes_of_chars(self.tokens)
        for position in np.flatnonzero(~in_alphabet | self.added).tolist():
            token_bytes[position] = bytes_of(self.tokens[position], bool(self.added[position]))
        return token_bytes

    @cached_property
    def texts(self) -> list[str | None]:
        """The text of each token; None if its bytes are not whole characters."""
        texts: list[str | None] = []
        for data in self.token_bytes:
            try:
                texts.append(data.decode())
            except UnicodeDecodeError:
                texts.append(None)
        return texts

    @cached_property
    def sizes(self) -> Integers:
        """The number of bytes of text of each token."""
        return np.fromiter(map(len, self.token_bytes), np.int64, len(self))

    @cached_property
    def single_byte(self) -> Flags:
        """Which tokens are one byte of text."""
        single: Flags = self.sizes == 1
        return single

    @cached_property
    def partial(self) -> Flags:
        """Which tokens are not whole characters."""
        return np.array([text is None for text in self.texts], np.bool_)

    def shown(self, position: int) -> str:
        """Return a token as people read it: its text quoted, or its bytes."""
        text = self.texts[position]
        return repr(self.token_bytes[position]) if text is None else shortened(text)


def _bytes_of_chars(tokens: list[str]) -> tuple[list[bytes], Flags]:
    """Return the bytes of tokens in the byte-level alphabet, and which tokens are in it.

    All tokens at once: one by one takes many times as long.
    """
    byte_of = np.full(_ALPHABET_END + 1, _NO_BYTE, np.uint16)
    for char, byte in byte_level.CHAR_TO_BYTE.items():
        byte_of[ord(char)] = byte
    values = byte_of[np.minimum(_code_points(tokens), _ALPHABET_END)]
    others: Integers = np.concatenate(([0], np.cumsum(values == _NO_BYTE)))
    ends = np.cumsum(np.fromiter(map(len, tokens), np.int64, len(tokens)))
    data = values.astype(np.uint8).tobytes()
    tokens_as_bytes = [data[begin:end] for begin, end in pairwise([0, *ends.tolist()])]
    in_alphabet: Flags = np.diff(others[ends], prepend=0) == 0
    return tokens_as_bytes, in_alphabet


def _code_points(texts: list[str]) -> npt.NDArray[np.uint32]:
    """Return the code points of texts, one text after the other."""
    return np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)


def is_within_utf8(data: bytes) -> bool:
    """Return whether bytes can be adjacent bytes of a text in UTF-8."""
    begin = 0
    while begin < min(3, len(data)) and 0x80 <= data[begin] < 0xC0:
        begin += 1
    if begin == len(data):
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data[begin:])
    except UnicodeDecodeError:
        return False
    return True


def tokens_by_script(vocabulary: Vocabulary) -> dict[str, int]:
    """Return the number of tokens of each script, most tokens first; added tokens are left out.

    A token is of the script of its letters, of `several` if its letters have more than one, of
    `none` without letters, of `partial_character` if its bytes are not whole characters.
    """
    import regex  # slow to import

    texts = [*compress(vocabulary.texts, (~vocabulary.added).tolist())]
    whole = [text for text in texts if text is not None]
    # A character that is no letter ends each, so that none is empty.
    points = _code_points(["\0".join(whole), "\0"] if whole else [])
    kinds = ["none", "several", *SCRIPTS, "other"]
    kind_of = np.zeros(int(points.max(initial=0)) + 1, np.uint8)
    letters = "".join(filter(str.isalpha, map(chr, np.flatnonzero(np.bincount(points)).tolist())))
    kind_of[_code_points([letters])] = kinds.index("other")
    for kind in ("none", *SCRIPTS):
        script = "Common" if kind == "none" else kind
        own = regex.compile(rf"\p{{Script={script}}}").findall(letters)
        kind_of[_code_points(own)] = kinds.index(kind)
    of_letters = kind_of[points]
    lengths = np.fromiter(map(len, whole), np.int64, len(whole)) + 1
    starts = np.cumsum(lengths) - lengths
    greatest = np.maximum.reduceat(of_letters, starts)
    # 0, which is no letter, becomes the greatest number.
    smallest = np.minimum.reduceat(of_letters - np.uint8(1), starts) + np.uint8(1)
    kind_numbers = np.where(smallest < greatest, kinds.index("several"), greatest)
    counts = np.bincount(kind_numbers, minlength=len(kinds)).tolist()
    numbers = {
        **dict(zip(kinds, counts, strict=True)),
        "partial_character": len(texts) - len(whole),
    }
    rows = [(kind, number) for kind, number in numbers.items() if number]
    return dict(sorted(rows, key=lambda row: (-row[1], row[0])))

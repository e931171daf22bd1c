"""What the tokens of a tokenizer are: their bytes, scripts, positions in arrays."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bpe_beam.messages import shortened
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.models import BPE, SentencePiece, Unigram, WordPiece
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

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class Vocabulary:
    """The tokens of a tokenizer in the order of their ids, as arrays need them.

    A token's position is the number of tokens with smaller ids. Without holes it is the id.

    Args:
        tokenizer: The tokenizer.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        tokens = sorted((number, token) for token, number in tokenizer.vocab.items())
        self.ids: Integers = np.array([number for number, _ in tokens], np.int64)
        self.tokens = [token for _, token in tokens]
        self._dense = len(tokens) == 0 or tokenizer.max_id + 1 == len(tokens)
        added = {token.id for token in tokenizer.spec.added_tokens}
        self.added = np.array([number in added for number, _ in tokens], np.bool_)

    def __len__(self) -> int:
        return len(self.tokens)

    def positions(self, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.signedinteger]:
        """Return the positions of ids that the tokenizer has."""
        if self._dense:
            return ids.astype(np.int64)
        return np.searchsorted(self.ids, ids)

    @cached_property
    def position_of(self) -> dict[str, int]:
        """The position of each token."""
        return {token: position for position, token in enumerate(self.tokens)}

    @property
    def unknown(self) -> int | None:
        """The position of the unknown token; None if the model has none."""
        model = self.tokenizer.spec.model
        token = None
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
        in_bytes = self.tokenizer.spec.model_reads_bytes
        fallback = isinstance(model, BPE | Unigram | SentencePiece) and model.byte_fallback
        found = []
        for token, added in zip(self.tokens, self.added.tolist(), strict=True):
            if not added and in_bytes and byte_level.is_byte_level(token):
                found.append(byte_level.to_bytes(token))
            elif fallback and (match := _BYTE_TOKEN.fullmatch(token)):
                found.append(bytes([int(match[1], 16)]))
            elif added:
                found.append(token.encode())
            else:
                text = token.removeprefix(prefix).removesuffix(suffix) or token
                found.append(text.replace("\u2581", " ").encode())
        return found

    @cached_property
    def texts(self) -> list[str | None]:
        """The text of each token; None if its bytes are not whole characters."""
        found: list[str | None] = []
        for data in self.token_bytes:
            try:
                found.append(data.decode())
            except UnicodeDecodeError:
                found.append(None)
        return found

    @cached_property
    def single_byte(self) -> Flags:
        """Which tokens are one byte of text."""
        return np.array([len(data) == 1 for data in self.token_bytes], np.bool_)

    @cached_property
    def partial(self) -> Flags:
        """Which tokens are not whole characters."""
        return np.array([text is None for text in self.texts], np.bool_)

    def shown(self, position: int) -> str:
        """Return a token as people read it: its text quoted, or its bytes."""
        text = self.texts[position]
        return repr(self.token_bytes[position]) if text is None else shortened(text)


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

    names = {"": "Common", **{name: name for name in SCRIPTS}}
    patterns = {shown: regex.compile(rf"\p{{Script={name}}}") for shown, name in names.items()}
    known: dict[str, str] = {}

    def script_of(letter: str) -> str:
        """Return the script of a letter; "" for letters that all scripts share."""
        if letter not in known:
            found = (name for name, pattern in patterns.items() if pattern.match(letter))
            known[letter] = next(found, "other")
        return known[letter]

    numbers: Counter[str] = Counter()
    for text, added in zip(vocabulary.texts, vocabulary.added.tolist(), strict=True):
        if added:
            continue
        if text is None:
            numbers["partial_character"] += 1
            continue
        scripts = {script_of(letter) for letter in text if letter.isalpha()} - {""}
        numbers[next(iter(scripts), "none") if len(scripts) < 2 else "several"] += 1
    return dict(sorted(numbers.items(), key=lambda row: (-row[1], row[0])))

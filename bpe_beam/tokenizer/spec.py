"""`TokenizerSpec`: everything in a tokenizer's files, as plain data."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.tokenizer.components import byte_level, models
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.component import Count
from bpe_beam.tokenizer.components.decoders import ByteLevelDecoder, Decoder
from bpe_beam.tokenizer.components.normalizers import Normalizer
from bpe_beam.tokenizer.components.postprocessors import PostProcessor
from bpe_beam.tokenizer.components.pretokenizers import (
    ByteLevelPreTokenizer,
    PreTokenizer,
    ends_in_bytes,
)

Direction = Literal["Left", "Right"]


class Truncation(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a program that runs a model cuts texts."""

    direction: Direction = "Right"
    max_length: Count
    strategy: Literal["LongestFirst", "OnlyFirst", "OnlySecond"]
    stride: Count


class FixedLength(Struct, frozen=True, forbid_unknown_fields=True):
    """Padding to one length, in ids, whatever the texts."""

    length: Count = field(name="Fixed")


class Padding(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a program that runs a model pads texts to one length."""

    strategy: Literal["BatchLongest"] | FixedLength
    direction: Direction
    pad_to_multiple_of: Count | None = None
    pad_id: Count
    pad_type_id: Count
    pad_token: str


class TokenizerSpec(Struct, frozen=True):
    """The components of a tokenizer, by their names in `tokenizer.json`."""

    model: models.Model
    added_tokens: tuple[AddedToken, ...] = ()  # extracted from the text, in the order of ids
    normalizer: Normalizer | None = None
    pre_tokenizer: PreTokenizer | None = None  # None: the text is one word
    post_processor: PostProcessor | None = None
    decoder: Decoder | None = None  # None: tokens are joined with spaces, as in Hugging Face
    truncation: Truncation | None = None  # only stored: ids of a corpus are never cut
    padding: Padding | None = None  # only stored: ids of a corpus are never padded
    folder_warning: str | None = None  # about the files next to the tokenizer's

    @property
    def warning(self) -> str | None:
        """What to tell users of settings that are not applied; None: nothing."""
        kept = [name for name in ("truncation", "padding") if getattr(self, name) is not None]
        if not kept:
            return self.folder_warning
        more = f"; {self.folder_warning}" if self.folder_warning else ""
        return (
            f"the tokenizer's {' and '.join(kept)} {'are' if len(kept) > 1 else 'is'} not applied: "
            f"texts keep all their tokens and get no others{more}"
        )

    @property
    def model_kind(self) -> str:
        """The kind of the model, in words."""
        return "byte-level BPE" if self.model_reads_bytes else self.model.json_type

    @property
    def model_reads_bytes(self) -> bool:
        """Whether the model encodes bytes: BPE after a byte-level pre-tokenizer."""
        model = self.model
        if not isinstance(model, models.BPE) or not ends_in_bytes(self.pre_tokenizer):
            return False
        if model.continuing_subword_prefix or model.end_of_word_suffix:
            return False
        # The token of a byte without a symbol can only be decided by its character.
        decided = model.unk_token is None and not model.byte_fallback
        return decided or model.vocab.keys() >= byte_level.CHAR_TO_BYTE.keys()

    def check(self, location: models.ErrorLocation) -> None:
        """Check the components, and that they fit each other."""
        self.model.check(location)
        for number, token in enumerate(self.added_tokens):
            models.check_id(token.id, location.added(number))
        before, after = self.post_processor.frame() if self.post_processor else ([], [])
        ids = [*(token.id for token in self.added_tokens), *(i for _, i in (*before, *after))]
        tokens = models.tokens_by_id(self.model.vocab, ids)
        self._check_added_tokens(tokens, location)
        for inserted, token_id in (*before, *after):
            if token_id not in tokens:
                raise UsageError(
                    f"post_processor: it inserts {shortened(inserted)} with the id {token_id}, "
                    "which no token has"
                )
        if self.model_reads_bytes and isinstance(self.model, models.BPE):
            self._check_meanings(self.model, location)

    def _check_added_tokens(self, tokens: dict[int, str], location: models.ErrorLocation) -> None:
        """Check the added tokens, and add them to `tokens`, the model's tokens by id."""
        models.check_total_characters("added_tokens", (one.content for one in self.added_tokens))
        contents: set[str] = set()
        for number, token in enumerate(self.added_tokens):
            name = location.added(number)
            if not token.content:
                raise UsageError(f"{name}: an empty token")
            if len(token.content) > models.MAX_TOKEN_CHARS:
                raise UsageError(
                    f"{name}: a token must have at most {models.MAX_TOKEN_CHARS:,} characters, "
                    f"got {len(token.content):,}"
                )
            if token.content in contents:
                raise UsageError(f"{name}: the token {shortened(token.content)} is already listed")
            contents.add(token.content)
            owner = tokens.setdefault(token.id, token.content)
            if owner != token.content:
                raise UsageError(
                    f"{name}: id {token.id} of {shortened(token.content)} is taken by "
                    f"{shortened(owner)}"
                )
            own_id = self.model.vocab.get(token.content, token.id)
            if own_id != token.id:
                raise UsageError(
                    f"{name}: {shortened(token.content)} has id {token.id} here and id {own_id} in "
                    "the model's vocabulary"
                )

    def _check_meanings(self, model: models.BPE, location: models.ErrorLocation) -> None:
        """Refuse an added token whose text the model makes from other bytes.

        `é` as a special token and `é` as the symbol of byte 0xE9 would be one entry: one id with
        two meanings, so that decoding could not restore the text.
        """
        contents = [token.content for token in self.added_tokens]
        if not any(map(byte_level.is_ambiguous, contents)):
            return
        made = {left + right for left, right in model.merges}
        for number, content in enumerate(contents):
            is_made = content in made or (len(content) == 1 and content in model.vocab)
            if is_made and byte_level.is_ambiguous(content):
                raise UsageError(
                    f"{location.added(number)}: {shortened(content)} is also how the model writes "
                    f"the bytes {byte_level.to_bytes(content)[:20]!r}; give the added token "
                    "another text"
                )


def byte_level_spec(
    model: models.BPE, added_tokens: tuple[AddedToken, ...], location: models.ErrorLocation
) -> TokenizerSpec:
    """Return a tokenizer with this model and the other components of GPT-2's."""
    spec = TokenizerSpec(
        model, added_tokens, pre_tokenizer=ByteLevelPreTokenizer(), decoder=ByteLevelDecoder()
    )
    spec.check(location)
    added = {token.content for token in added_tokens}
    for token in model.vocab:
        if not byte_level.is_byte_level(token) and token not in added:
            raise UsageError(
                f"{location.token(token)}: neither an added token nor written in the byte-level "
                "alphabet"
            )
    return spec

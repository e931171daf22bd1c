"""All that makes a tokenizer, as plain data: what its files are read into and written from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bpe_beam.errors import UsageError
from bpe_beam.messages import shortened
from bpe_beam.record import record
from bpe_beam.tokenizer import byte_level
from bpe_beam.tokenizer.added_tokens import AddedToken
from bpe_beam.tokenizer.decoders import ByteLevelDecoder, Decoder
from bpe_beam.tokenizer.models import (
    BPE,
    MAX_CONTENT_CHARS,
    MAX_TOKEN_CHARS,
    ErrorLocation,
    Model,
    check_id,
)
from bpe_beam.tokenizer.normalizers import Normalizer
from bpe_beam.tokenizer.postprocessors import PostProcessor
from bpe_beam.tokenizer.pretokenizers import ByteLevelPreTokenizer, PreTokenizer, ends_in_bytes


@record
class TokenizerSpec:
    """The parts of a tokenizer, by the names they have in `tokenizer.json`.

    Attributes:
        model: How words become tokens.
        added_tokens: Tokens that are cut out of the text, in the order of ids.
        normalizer: What is done to the text first; None: it is taken as it is.
        pre_tokenizer: How text is cut into words; None: it is one word.
        post_processor: What is done to the tokens, if anything.
        decoder: How tokens become text again; None joins them with spaces, as in Hugging Face.
    """

    model: Model
    added_tokens: tuple[AddedToken, ...] = ()
    normalizer: Normalizer | None = None
    pre_tokenizer: PreTokenizer | None = None
    post_processor: PostProcessor | None = None
    decoder: Decoder | None = None

    @property
    def model_reads_bytes(self) -> bool:
        """Whether the model works on bytes: BPE after a byte-level pre-tokenizer."""
        model = self.model
        if not isinstance(model, BPE) or not ends_in_bytes(self.pre_tokenizer):
            return False
        if model.continuing_subword_prefix or model.end_of_word_suffix:
            return False
        # What becomes of a byte without a symbol only characters can tell.
        decided = model.unk_token is None and not model.byte_fallback
        return decided or model.vocab.keys() >= byte_level.CHAR_TO_BYTE.keys()

    def check(self, location: ErrorLocation) -> None:
        """Refuses parts that contradict themselves or each other.

        Args:
            location: How the message names the place.

        Raises:
            UsageError: Names the place, what stands there, and what may.
        """
        self.model.check(location)
        vocab = self.model.vocab
        token_by_id = {token_id: token for token, token_id in vocab.items()}
        contents: set[str] = set()
        if (characters := sum(len(one.content) for one in self.added_tokens)) > MAX_CONTENT_CHARS:
            raise UsageError(
                f"added_tokens: they must have at most {MAX_CONTENT_CHARS:,} characters together, "
                f"got {characters:,}"
            )
        for number, token in enumerate(self.added_tokens):
            place = location.added(number)
            check_id(token.id, place)
            if not token.content:
                raise UsageError(f"{place}: an empty token")
            if len(token.content) > MAX_TOKEN_CHARS:
                raise UsageError(
                    f"{place}: a token of {len(token.content):,} characters; at most "
                    f"{MAX_TOKEN_CHARS:,}"
                )
            if token.content in contents:
                raise UsageError(
                    f"{place}: the token {shortened(token.content)} stands there already"
                )
            contents.add(token.content)
            owner = token_by_id.setdefault(token.id, token.content)
            if owner != token.content:
                raise UsageError(
                    f"{place}: id {token.id} of {shortened(token.content)} is taken by "
                    f"{shortened(owner)}"
                )
            if vocab.get(token.content, token.id) != token.id:
                raise UsageError(
                    f"{place}: {shortened(token.content)} has id {token.id} here and id "
                    f"{vocab[token.content]} in the model's vocabulary"
                )
        self._check_frame(token_by_id)
        if self.model_reads_bytes and isinstance(self.model, BPE):
            self._check_meanings(self.model, location)

    def _check_frame(self, tokens: Mapping[int, str]) -> None:
        """Refuses a post-processor that puts in what the tokenizer does not have."""
        if self.post_processor is None:
            return
        before, after = self.post_processor.frame()
        for token, token_id in (*before, *after):
            if token_id not in tokens:
                raise UsageError(
                    f"post_processor: it puts in {shortened(token)} by the id {token_id}, which no "
                    "token has"
                )

    def _check_meanings(self, model: BPE, location: ErrorLocation) -> None:
        """Refuses an added token whose text the model makes from other bytes.

        `é` as a special token and `é` as the symbol of byte 0xE9 would be one entry: one id with
        two meanings, so that decoding could not give back what was encoded.
        """
        doubtful = {
            token.content: number
            for number, token in enumerate(self.added_tokens)
            if byte_level.is_ambiguous(token.content)
        }
        if not doubtful:
            return
        made = {left + right for left, right in model.merges}
        for content, number in doubtful.items():
            if content in made or (len(content) == 1 and content in model.vocab):
                raise UsageError(
                    f"{location.added(number)}: {shortened(content)} is also how the model writes "
                    f"the bytes {byte_level.to_bytes(content)[:20]!r}; give the added token "
                    "another text"
                )


def byte_level_spec(
    model: BPE, added_tokens: tuple[AddedToken, ...], location: ErrorLocation
) -> TokenizerSpec:
    """The parts of a tokenizer like GPT-2's around a model.

    Args:
        model: The model; its tokens are in the byte-level alphabet.
        added_tokens: These may stand in its vocabulary, too.
        location: How messages name places.

    Raises:
        UsageError: As `TokenizerSpec.check`, or a token that is neither bytes nor an added token.
    """
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


def from_learned(
    vocab: Sequence[str], merges: Iterable[tuple[str, str]], special_tokens: Sequence[str]
) -> TokenizerSpec:
    """The parts of a byte-level BPE tokenizer from what was learned.

    Args:
        vocab: Tokens in the byte-level alphabet and the special tokens, in order of ids.
        merges: Pairs of tokens by rank.
        special_tokens: Those of the vocabulary that are special.

    Raises:
        UsageError: A token stands twice, a merge's token is not in the vocabulary, or a special
            token is missing or cannot be told from a token of the model.
    """
    ids: dict[str, int] = {}
    for token_id, token in enumerate(vocab):
        if ids.setdefault(token, token_id) != token_id:
            raise UsageError(f"vocab[{token_id}]: {shortened(token)} stands there twice")
    for token in special_tokens:
        if token not in ids:
            raise UsageError(f"special_tokens: {shortened(token)} is not in the vocabulary")
    by_id = sorted(special_tokens, key=lambda token: ids[token])
    added = tuple(AddedToken(ids[token], token) for token in by_id)
    location = ErrorLocation(
        token=lambda token: f"vocab: {shortened(token)}",
        merge=lambda rank: f"merges[{rank}]",
        added=lambda _: "special_tokens",
    )
    return byte_level_spec(BPE(ids, [(left, right) for left, right in merges]), added, location)

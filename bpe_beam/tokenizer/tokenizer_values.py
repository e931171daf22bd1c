"""The components of a tokenizer, and the values that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bpe_beam.tokenizer.components.added_tokens import AddedTokens
from bpe_beam.tokenizer.components.models import BPE, Unigram
from bpe_beam.tokenizer.encoding.native_encoder import holds_gil
from bpe_beam.tokenizer.files import hugging_face_ids, tokenizer_json
from bpe_beam.tokenizer.spec import TokenizerSpec

if TYPE_CHECKING:
    from bpe_beam.tokenizer.files.transformers_files import ModelInput


class _Role:
    """A property of a tokenizer: the special token of a role, such as `eos_token`."""

    def __set_name__(self, owner: type[TokenizerValues], name: str) -> None:
        self._role = name

    def __get__(self, tokenizer: TokenizerValues | None, owner: object) -> str | None:
        return None if tokenizer is None else tokenizer.roles.get(self._role)


class _RoleId(_Role):
    """A property of a tokenizer: the id of the special token of a role, such as `eos_token_id`."""

    def __get__(self, tokenizer: Any, owner: object) -> Any:
        if tokenizer is None:
            return None
        token = tokenizer.roles.get(self._role.removesuffix("_id"))
        return None if token is None else tokenizer.token_to_id(token)


class TokenizerValues:
    """The values of a tokenizer: vocabulary, merges, special tokens, roles, fingerprint."""

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
        if not isinstance(other, TokenizerValues):
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

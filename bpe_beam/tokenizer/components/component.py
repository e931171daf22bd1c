"""The base of a tokenizer's components, which are plain data.

The fields of a component are named and ordered as in Hugging Face's files, and their types decide
which values are valid, so that msgspec reads and writes a component without further code.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct

from bpe_beam.errors import UsageError, require_choice
from bpe_beam.vocabulary_limits import MAX_VOCAB_SIZE

TokenId = Annotated[int, Meta(ge=0, lt=MAX_VOCAB_SIZE)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Component(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    """A model, normalizer, pre-tokenizer, post-processor or decoder.

    Its "type" in files is the name of its class, or the `tag` of the class.
    """

    @property
    def json_type(self) -> str:
        """The "type" in files."""
        return str(self.__struct_config__.tag)


class MetaspaceComponent(Component, frozen=True):
    """The settings of the pre-tokenizer and the decoder `Metaspace`."""

    replacement: str = "\u2581"  # the visible character for a space
    # Which stretches of text get the character in front, if they do not begin with it: `always`
    # all, `never` none, `first` only the first of the whole text. The decoder removes it from the
    # first token, but for `never`.
    prepend_scheme: str = "always"
    split: bool = True

    def __post_init__(self) -> None:
        check_character("replacement", self.replacement)
        require_choice("prepend_scheme", self.prepend_scheme, ("always", "first", "never"))


class OneKey(Struct, frozen=True, forbid_unknown_fields=True):
    """An object that has exactly one of its keys; the fields of the others are UNSET."""

    def __post_init__(self) -> None:
        values = [getattr(self, name) for name in self.__struct_fields__]
        if len(values) - values.count(UNSET) != 1:
            keys = " or ".join(f'{{"{key}": ...}}' for key in self.__struct_encode_fields__)
            raise UsageError(f"{type(self).__name__} must be {keys}")


def check_character(name: str, value: str) -> None:
    """Refuse a value that is not one character."""
    if len(value) != 1:
        raise UsageError(f"{name} must be one character, got {value[:40]!r}")

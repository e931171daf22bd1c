"""Settings of `tokenize`."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_beam.corpus.reject_limits import Limit
from bpe_beam.errors import require
from bpe_beam.settings.common import (
    AllowedSpecial,
    InputSettings,
    RunSettings,
    allowed_special_option,
    columns_option,
    output_option,
    tokenizer_option,
)
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.settings.field import Settings, option, part
from bpe_beam.settings.parsing import BadValueError, parse_length
from bpe_beam.shards.arrangement import MAX_SEED, MAX_SEQUENCE_LENGTH, SHARD_TOKENS, Arrangement
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, SHARD_FORMATS
from bpe_beam.shards.formats.interface import MAX_DOCUMENT_TOKENS


def _check_share(share: str) -> None:
    if not share.endswith("%") or Limit.parse(share, "validation_share").numerator == 0:
        raise BadValueError(
            f"must be a share above 0% with a percent sign, such as 0.5%, got {share!r}"
        )


@dataclass(frozen=True)
class ArrangementSettings(Settings):
    """Settings of the order of documents, and of the sequences made of them."""

    GROUP = "sequences and order"

    sequence_length: int | None = option(
        None,
        parse=parse_length,
        help="Make sequences of N tokens from the documents. A trainer that shifts one sequence to "
        "get inputs and labels wants one token more than its input has: 4097 for inputs of 4,096.",
        between=(1, MAX_SEQUENCE_LENGTH),
    )
    packing: str | None = option(
        None,
        choices=("concatenate", "best_fit"),
        help="How sequences are made. concatenate: join all documents and cut after every N "
        "tokens. best_fit: cut only documents of more than N tokens, and choose those of a "
        "sequence so that little room is left.",
        default_help="concatenate",
    )
    max_documents_per_sequence: int | None = option(
        None,
        help="With best_fit: never put more than N documents, or parts of them, into a sequence.",
        between=(1, MAX_SEQUENCE_LENGTH),
    )
    pad_token: str | None = option(
        None,
        metavar="TOKEN",
        help="Token that fills each sequence up to its length.",
        default_help="sequences may be shorter",
    )
    shuffle_seed: int | None = option(
        None,
        help="Shuffle documents, or sequences, with seed N, in the same order as grain.",
        default_help="the order of the corpus",
        between=(0, MAX_SEED),
    )
    validation_share: str | None = option(
        None,
        metavar="P%",
        help="Write about this share of the documents to the folder validation below the output, "
        "the others to train. A hash of a document's text, or of its id, decides.",
        check=_check_share,
    )
    validation_by: str | None = option(
        None,
        choices=("text", "id"),
        help="What decides whether a document is for validation. text: equal texts are in one "
        "part. id: documents with one id are in one part; documents without an id go by their "
        "texts.",
        default_help="text",
    )
    shard_tokens: int = option(
        SHARD_TOKENS,
        help="With sequences, a seed or a validation share: the number of tokens that a shard has "
        "at most, about. A worker needs some 10 bytes of memory for each.",
        between=(1, 1 << 30),
    )
    dry_run: bool = option(
        False,
        help="Write no shard: show what would be read, and estimate time, memory and storage from "
        "the job on a sample. With sequences, a seed or a validation share: "
        "tokenize into the folder work below the output, and tell how many sequences and how much "
        "padding there would be. The same command without this option continues from there, and so "
        "does one with other options of this group.",
    )

    @property
    def arrangement(self) -> Arrangement | None:
        """What is to be made; None if documents stay in their order and as they are."""
        if (self.sequence_length, self.shuffle_seed, self.validation_share) == (None, None, None):
            return None
        values = {name: getattr(self, name) for name in Arrangement.__struct_fields__}
        if self.sequence_length is not None and self.packing is None:
            values["packing"] = "concatenate"
        if self.validation_share is None:
            del values["validation_by"]
        elif self.validation_by is None:
            values["validation_by"] = "text"
        return Arrangement(**values)

    def check(self) -> None:
        """Refuse settings that would have no effect."""
        for name in ("packing", "pad_token"):
            require(
                self.sequence_length is not None or getattr(self, name) is None,
                "needs the length of sequences",
                name,
                remedy="give {sequence_length}",
            )
        require(
            self.packing == "best_fit" or self.max_documents_per_sequence is None,
            "is an option of best_fit",
            "max_documents_per_sequence",
            remedy="give {packing} best_fit",
        )
        require(
            self.validation_share is not None or self.validation_by is None,
            "has no effect on documents that are not divided",
            "validation_by",
            remedy="give {validation_share}",
        )
        require(
            self.shard_tokens == SHARD_TOKENS or self.arrangement is not None,
            "has no effect on documents in the order of the corpus",
            "shard_tokens",
            remedy="give {sequence_length}, {shuffle_seed} or {validation_share}",
        )


@dataclass(frozen=True)
class TokenizeSettings(Settings):
    """Settings of `tokenize`: a corpus and a tokenizer to token shards."""

    input: InputSettings = part(InputSettings)
    tokenizer: str = tokenizer_option()
    output: str = output_option("shards")
    run: RunSettings = part(RunSettings, RunSettings())
    formats: tuple[str, ...] = option(
        (DEFAULT_SHARD_FORMAT,),
        flag="--format",
        choices=SHARD_FORMATS,
        kind="repeat",
        help="Format of the shards. Repeat for more: each then has a folder of its name below the "
        "output, and the text is tokenized once.",
        default_help=DEFAULT_SHARD_FORMAT,
    )
    columns: tuple[str, ...] = columns_option(
        (),
        "Columns that Parquet and Arrow shards get for trainers, as lists: attention_mask and "
        "labels; of sequences position_ids, loss_mask and seq_start_id, too.",
        default_help="none",
        identity="if set",
    )
    append: str | None = option(
        None, metavar="TOKEN", help="Token put after each document.", identity="always"
    )
    prepend: str | None = option(
        None, metavar="TOKEN", help="Token put before each document.", identity="always"
    )
    allowed_special: AllowedSpecial = allowed_special_option(identity="always")
    add_special_tokens: bool = option(
        False,
        help="Put the special tokens of the tokenizer's post-processor, such as <s>, around each "
        "document; those of --prepend and --append come outside of them.",
        identity="if set",
    )
    empty_documents: str = option(
        "keep",
        choices=("keep", "drop"),
        help="What happens to documents without a token of their text. Dropped ones are counted.",
        identity="if set",
    )
    max_document_tokens: int | None = option(
        None,
        help="Most tokens of a document, those around it included.",
        default_help="what the format allows",
        between=(1, MAX_DOCUMENT_TOKENS),
        identity="if set",
    )
    long_documents: str = option(
        "split",
        choices=("split", "cut"),
        help="What happens to documents beyond --max-document-tokens: they become several "
        "documents, or tokens at the end of their texts are left out. They are counted.",
        identity="if set",
    )
    arranging: ArrangementSettings = part(ArrangementSettings, ArrangementSettings())

    def check(self) -> None:
        """Refuse a repeated format, rules without effect, paths out of reach, and a template."""
        for name in self.formats:
            require(self.formats.count(name) == 1, f"must not repeat {name!r}", "formats")
        require(
            self.max_document_tokens is not None or self.long_documents == "split",
            "has no effect without a limit",
            "long_documents",
            remedy="give {max_document_tokens}",
        )
        require(
            not any(f.startswith("--template_location=") for f in self.run.runner_options)
            or (len(self.formats) == 1 and self.arranging.arrangement is None),
            "templates exist of tokenize with one format, without sequences, seed and validation "
            "share",
        )
        require_reachable(self.run.runner, inputs=self.input.inputs, output=(self.output,))

    @property
    def only_estimates(self) -> bool:
        """See `Settings`; a dry run of an arrangement tokenizes, and plans it."""
        return self.arranging.dry_run and self.arranging.arrangement is None

    @property
    def format(self) -> str:
        """The format of the shards, where there is one."""
        (format_name,) = self.formats
        return format_name

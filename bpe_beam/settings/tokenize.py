"""Settings of `tokenize`."""

from __future__ import annotations

from bpe_beam.corpus.rejects import Limit
from bpe_beam.errors import require
from bpe_beam.settings import common
from bpe_beam.settings.cluster import cluster_option
from bpe_beam.settings.common import AllowedSpecial, InputSettings, RunSettings
from bpe_beam.settings.dataflow import require_reachable
from bpe_beam.settings.field import Settings, option, part
from bpe_beam.settings.parsing import BadValueError, parse_length
from bpe_beam.shards.formats import DEFAULT_SHARD_FORMAT, SHARD_FORMATS
from bpe_beam.shards.formats.interface import MAX_DOCUMENT_TOKENS
from bpe_beam.shards.shard_rows import MAX_SEED, MAX_SEQUENCE_LENGTH, SHARD_TOKENS, Arrangement


def _check_share(share: str) -> None:
    if not share.endswith("%") or Limit.parse(share, "validation_share").numerator == 0:
        raise BadValueError(
            f"must be a share above 0% with a percent sign, such as 0.5%, got {share!r}"
        )


class ArrangementSettings(Settings, frozen=True):
    """Settings of the order of documents, and of sequences."""

    GROUP = "sequences and order"

    sequence_length: int | None = option(
        None,
        parse=parse_length,
        help="Make sequences of N tokens from the documents. If the trainer shifts a sequence to "
        "get inputs and labels, give one token more: 4097 for inputs of 4,096.",
        between=(1, MAX_SEQUENCE_LENGTH),
    )
    packing: str | None = option(
        None,
        choices=("concatenate", "best_fit"),
        help="How to make sequences. concatenate: join all documents and cut after every N "
        "tokens. best_fit: choose documents that fill a sequence well, and cut only documents "
        "longer than N tokens.",
        default_help="concatenate",
    )
    max_documents_per_sequence: int | None = option(
        None,
        help="With best_fit: maximum number of documents, whole or cut, in a sequence.",
        between=(1, MAX_SEQUENCE_LENGTH),
    )
    pad_token: str | None = option(
        None,
        metavar="TOKEN",
        help="Token that fills each sequence up to its length.",
        default_help="none, so sequences may be shorter",
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
        help="Write about this share of the documents to the folder validation in the output, and "
        "the others to the folder train. A hash of the document's text or id decides.",
        check=_check_share,
    )
    validation_by: str | None = option(
        None,
        choices=("text", "id"),
        help="Input of the hash that chooses documents for validation. text: documents with equal "
        "texts go to the same folder. id: documents with equal ids go to the same folder; "
        "documents without an id use their text.",
        default_help="text",
    )
    shard_tokens: int = option(
        SHARD_TOKENS,
        help="With sequences, a seed or a validation share: approximate maximum number of tokens "
        "in a shard. A worker needs about 10 bytes of memory for each token.",
        between=(1, 1 << 30),
    )
    dry_run: bool = option(
        False,
        help="Write no shards. Show what would be read, and estimate time, memory and storage by "
        "running the job on a sample. With sequences, a seed or a validation share: tokenize into "
        "the folder work in the output, and show the number of sequences and their padding. The "
        "same command without --dry-run continues from that folder; other options of this group "
        "may then be different.",
    )

    @property
    def arrangement(self) -> Arrangement | None:
        """The order and sequences to make; None if documents remain unchanged, in their order."""
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
        sequences, best_fit = self.sequence_length is not None, self.packing == "best_fit"
        validation = self.validation_share is not None
        effect = self.require_effect
        effect("packing", sequences, "sequences", "{sequence_length}")
        effect("pad_token", sequences, "sequences", "{sequence_length}")
        effect("max_documents_per_sequence", best_fit, "best_fit", "{packing} best_fit")
        effect("validation_by", validation, "a validation share", "{validation_share}")
        effect(
            "shard_tokens",
            self.arrangement is not None,
            "sequences, a seed or a validation share",
            "{sequence_length}, {shuffle_seed} or {validation_share}",
        )


class TokenizeSettings(Settings, frozen=True):
    """Settings of `tokenize`: a corpus and a tokenizer to token shards."""

    input: InputSettings = part(InputSettings)
    tokenizer: str = common.tokenizer_option()
    output: str = common.output_option("shards")
    run: RunSettings = part(RunSettings, RunSettings())
    formats: tuple[str, ...] = option(
        (DEFAULT_SHARD_FORMAT,),
        flag="--format",
        choices=SHARD_FORMATS,
        kind="repeat",
        help="Format of the shards. Repeat for more: each format gets a folder of its name in the "
        "output, and the text is tokenized once.",
        default_help=DEFAULT_SHARD_FORMAT,
    )
    columns: tuple[str, ...] = common.columns_option(
        (),
        "Columns for trainers, as lists, in Parquet and Arrow shards: attention_mask and labels; "
        "for sequences also position_ids, loss_mask and seq_start_id.",
        default_help="none",
        identity="if set",
    )
    append: str | None = option(
        None, metavar="TOKEN", help="Token to put after each document.", identity="always"
    )
    prepend: str | None = option(
        None, metavar="TOKEN", help="Token to put before each document.", identity="always"
    )
    allowed_special: AllowedSpecial = common.allowed_special_option(identity="always")
    add_special_tokens: bool = option(
        False,
        help="Put the special tokens of the tokenizer's post-processor, such as <s>, around each "
        "document. The tokens of --prepend and --append go outside of them.",
        identity="if set",
    )
    empty_documents: str = option(
        "keep",
        choices=("keep", "drop"),
        help="What to do with documents whose text has no tokens. Dropped documents are counted.",
        identity="if set",
    )
    max_document_tokens: int | None = option(
        None,
        help="Maximum number of tokens in a document, including the tokens around its text.",
        default_help="the limit of the format",
        between=(1, MAX_DOCUMENT_TOKENS),
        identity="if set",
    )
    long_documents: str = option(
        "split",
        choices=("split", "cut"),
        help="What to do with documents beyond --max-document-tokens. split: make several "
        "documents. cut: drop tokens at the end of the text. Such documents are counted.",
        identity="if set",
    )
    arranging: ArrangementSettings = part(ArrangementSettings, ArrangementSettings())
    cluster: tuple[tuple[str, str], ...] = cluster_option()

    def check(self) -> None:
        for name in self.formats:
            require(self.formats.count(name) == 1, f"must not repeat {name!r}", "formats")
        self.require_effect("cluster", self.arranging.dry_run, "a dry run", "{dry_run}")
        limited = self.max_document_tokens is not None
        self.require_effect("long_documents", limited, "a maximum", "{max_document_tokens}")
        require(
            not self.run.makes_template
            or (len(self.formats) == 1 and self.arranging.arrangement is None),
            "a template of tokenize must have one format and no sequences, seed or validation "
            "share",
        )
        require_reachable(self.run.runner, inputs=self.input.inputs, output=(self.output,))

    @property
    def only_estimates(self) -> bool:
        """See `Settings`; without a cluster, a dry run of an arrangement tokenizes."""
        arranges = self.arranging.arrangement is not None and not self.cluster
        return self.arranging.dry_run and not arranges

    @property
    def format(self) -> str:
        """The format of the shards, if it is the only one."""
        (format_name,) = self.formats
        return format_name

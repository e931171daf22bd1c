"""The inputs of `tokenize`: a tokenizer that fits the settings, and the plan of the corpus."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from bpe_beam.corpus.plan import Plan
from bpe_beam.errors import require
from bpe_beam.jobs.corpus import input as corpus_input
from bpe_beam.settings.field import identity_of
from bpe_beam.settings.tokenize import TokenizeSettings
from bpe_beam.shards.formats import shard_format
from bpe_beam.shards.formats.interface import ShardLimit, limit_of
from bpe_beam.shards.formats.table_schema import require_columns
from bpe_beam.shards.manifest import ENCODING
from bpe_beam.shards.shard_rows import DocumentChanges
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.workers.document_encoding import Encoding


@dataclass(frozen=True)
class TokenizeInputs:
    """The inputs of a tokenization.

    `limit` is the largest shard that other formats can store, into which shards are converted.
    """

    settings: TokenizeSettings
    storage: Storage
    tokenizer: Tokenizer
    encoding: Encoding
    plan: Plan
    limit: ShardLimit | None = None


def read_inputs(settings: TokenizeSettings, plan: Plan | None = None) -> TokenizeInputs:
    """Return the inputs; refuse settings that do not fit the tokenizer."""
    storage = Storage(settings.run.storage_options)
    tokenizer = Tokenizer.from_file(settings.tokenizer, storage=storage)
    encoding = Encoding.of(tokenizer, **framing(settings))
    for format_name in settings.formats:
        require_frame(format_name, encoding)
        sequences = settings.arranging.sequence_length is not None
        require_columns(settings.columns, format_name, sequences=sequences)
    arrangement, limit = (
        settings.arranging.arrangement,
        limit_of(map(shard_format, settings.formats)),
    )
    if arrangement is not None and limit is not None:
        require(
            arrangement.shard_tokens <= limit.tokens,
            f"must be at most {limit.tokens:,} for shards of {', '.join(settings.formats)}, got "
            f"{arrangement.shard_tokens:,}",
            "shard_tokens",
        )
    plan = plan or corpus_input.plan_of(
        storage, settings.input, outputs=(settings.output, settings.run.summary_file)
    )
    return TokenizeInputs(settings, storage, tokenizer, encoding, plan)


def require_frame(format_name: str, encoding: Encoding) -> None:
    """Refuse documents that begin with no token for a format that needs one."""
    begins = bool(encoding.frame(encoding.tokenizer())[0])
    require(
        begins or not shard_format(format_name).needs_prepend,
        f"must be given for shards of {format_name}, whose readers know a document by the token "
        "that it begins with",
        "prepend",
        remedy="give the end-of-text token, such as <|endoftext|>",
    )


def framing(settings: TokenizeSettings) -> dict[str, Any]:
    """Return the settings of encoding, as `__job` and the manifest have them."""
    return {key: value for key, value in identity_of(settings).items() if key in ENCODING}


def tokenizer_warnings(encoding: Encoding) -> list[str]:
    """Return warnings about a tokenizer and the tokens around documents."""
    tokenizer = encoding.tokenizer()
    warnings = [*filter(None, (tokenizer.spec.warning, tokenizer.file_warning))]
    if encoding.left_out is not None:
        remedy = "give --add-special-tokens for these, or --prepend and --append"
        warnings.append(f"{encoding.left_out}: {remedy}")
    return warnings


def unmarked_warnings(inputs: TokenizeInputs) -> list[str]:
    """Return a warning if sequences do not show where a document ends, and the tokenizer could."""
    tokenizer, length = inputs.tokenizer, inputs.settings.arranging.sequence_length
    end = tokenizer.roles.get("eos_token")
    if length is None or end is None or any(inputs.encoding.frame(tokenizer)):
        return []
    return [
        f"sequences do not show where a document ends: {end} is the tokenizer's eos_token; give "
        f"{shlex.join(['--append', end])} to put it after each document"
    ]


def doubled_warnings(encoding: Encoding, changes: DocumentChanges, documents: int) -> list[str]:
    """Return a warning if texts already have the tokens that are put around documents."""
    return [*filter(None, (encoding.doubled_warning(changes.doubled, documents),))]

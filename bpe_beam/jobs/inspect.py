"""The inspect job: the contents of a tokenizer, a counts folder or a folder of shards."""

from __future__ import annotations

import contextlib
import heapq
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import json, to_builtins

from bpe_beam.errors import DataError, UsageError
from bpe_beam.folders.artifact_names import (
    JOB_FILE,
    MANIFEST_FILE,
    PARTS,
    SHARDS_TOKENIZER_FILE,
    SUMMARY_FILE,
    TOKENIZER_FILE,
)
from bpe_beam.folders.folder_kind import A_TOKENIZER, COUNTS, SHARDS, kind_of
from bpe_beam.progress import Progress
from bpe_beam.settings.inspect import InspectSettings
from bpe_beam.storage import Storage
from bpe_beam.storage.names import is_local
from bpe_beam.tokenizer.display import describe, model_in_words, text_of
from bpe_beam.tokenizer.files.published_folder import has_tokenizer
from bpe_beam.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from bpe_beam.counts.manifest import Filtered
    from bpe_beam.shards.manifest import Manifest

_FEW = 10
_DOCUMENTS = 3
_DOCUMENT_TOKENS = 60


Figures = dict[str, object]
"""JSON values by name, for people and programs to read."""


def run(settings: InspectSettings, _progress: Progress) -> Figures:
    """Return the contents of a tokenizer, or of a folder that a job wrote."""
    storage = Storage(settings.run.storage_options)
    return {"job": "inspect", **_figures(storage, settings.path)}


def _figures(storage: Storage, path: str) -> Figures:
    if not storage.is_folder(path):
        if not storage.exists(path):
            raise UsageError(f"{path}: no such file or folder")
        return _tokenizer_figures(Tokenizer.from_file(path, storage=storage))
    names = set(storage.list_names(path))
    kind = kind_of(storage, path)
    if MANIFEST_FILE in names:
        return (_counts_figures if kind == COUNTS else _shards_figures)(storage, path)
    if JOB_FILE not in names and has_tokenizer(names):
        return _folder_figures(storage, path)
    from bpe_beam.shards.windows import is_stream

    if is_stream(storage, path):
        from bpe_beam.jobs.stream_figures import stream_figures

        return stream_figures(storage, path)
    if kind in (SHARDS, None):
        from bpe_beam.shards.manifest import refuse_no_shards

        refuse_no_shards(storage, path)
    if JOB_FILE in names and (kind in (COUNTS, SHARDS) or TOKENIZER_FILE not in names):
        wanted = "" if kind is None else f", which makes {kind},"
        last = TOKENIZER_FILE if kind == A_TOKENIZER else MANIFEST_FILE
        raise UsageError(
            f"{path} is not finished, it has no {last}: run its job{wanted} again; it "
            "resumes where it was"
        )
    if TOKENIZER_FILE in names:
        return _folder_figures(storage, path)
    lacks = f"{path} has neither {MANIFEST_FILE} nor {TOKENIZER_FILE}"
    raise UsageError(f"{lacks}: no job of bpe-beam finished there")


def _folder_figures(storage: Storage, path: str) -> Figures:
    """Return the figures of a tokenizer's folder, with its settings for `transformers`."""
    tokenizer = Tokenizer.from_file(path, storage=storage)
    more = {
        "roles": [f"{role} {token}" for role, token in tokenizer.roles.items()] or None,
        "model_max_length": tokenizer.model_max_length,
        "chat_template": tokenizer.model_input.chat_templates != {} or None,
    }
    figures = _tokenizer_figures(tokenizer)
    if SUMMARY_FILE in storage.list_names(path) and (changed := _changed_files(storage, path)):
        warning = figures.get("warning")
        figures["warning"] = f"{warning}; {changed}" if warning else changed
    return {**figures, **{name: value for name, value in more.items() if value is not None}}


def _changed_files(storage: Storage, path: str) -> str | None:
    """Return a warning of files that are not as `train` wrote them."""
    from bpe_beam.folders.file_info import read_trained_files
    from bpe_beam.folders.receipts import TaskFolder

    files = read_trained_files(storage, path).files
    folder = TaskFolder(storage, path, "")
    changed = [file.name for file in files if not folder.matches(file)]
    return f"missing or changed since train wrote them: {', '.join(changed)}" if changed else None


def _tokenizer_figures(tokenizer: Tokenizer) -> Figures:
    """Return the components, sizes, special tokens, and some tokens and merges of a tokenizer."""
    spec = tokenizer.spec
    special = tokenizer.special_tokens
    in_bytes = spec.model_reads_bytes
    texts = [text_of(token, in_bytes) for token in tokenizer.vocab if token not in special]
    warnings = [spec.warning, tokenizer.file_warning, _reachable_specials(tokenizer)]
    warning = "; ".join(filter(None, warnings))
    lengths = Counter(len(text) for text in texts if isinstance(text, str))

    def in_characters(text: str | bytes) -> int:
        return len(text) if isinstance(text, str) else 0  # a part of a character

    merges = tokenizer.merges
    shown = merges if len(merges) <= 2 * _FEW else [*merges[:_FEW], None, *merges[-_FEW:]]
    return {
        "kind": "tokenizer",
        "model": model_in_words(spec),
        "vocab_size": tokenizer.vocab_size,
        "merges": len(merges),
        "highest_id": tokenizer.max_id,
        "normalizer": describe(spec.normalizer),
        "pre_tokenizer": describe(spec.pre_tokenizer),
        "post_processor": describe(spec.post_processor),
        "decoder": describe(spec.decoder),
        "truncation": spec.truncation and json.encode(spec.truncation).decode(),
        "padding": spec.padding and json.encode(spec.padding).decode(),
        "special_tokens": [f"{token_id} {token}" for token, token_id in special.items()],
        "tokens_by_characters": {str(length): lengths[length] for length in sorted(lengths)},
        "parts_of_characters": sum(isinstance(text, bytes) for text in texts) or None,
        "longest_tokens": list(map(repr, heapq.nlargest(_FEW, texts, key=in_characters))),
        "merges_first_and_last": [_merge(merge, in_bytes) for merge in shown],
        "fingerprint": tokenizer.fingerprint,
        **({"warning": warning} if warning else {}),
    }


def _reachable_specials(tokenizer: Tokenizer) -> str | None:
    """Return a warning of special tokens whose ids plain text can give, as whole words."""
    reached = []
    for token, token_id in tokenizer.special_tokens.items():
        with contextlib.suppress(DataError):  # a character that the vocabulary lacks
            if token_id in tokenizer.encode(token):
                reached.append(token)
    if not reached:
        return None
    return (
        f"plain text can give the ids of the special tokens {', '.join(reached)}: the model knows "
        "them as words; remove them from texts that you do not trust"
    )


def _merge(merge: tuple[str, str] | None, in_bytes: bool) -> str:
    """Return a merge for people; dots for merges that are not shown."""
    if merge is None:
        return "..."
    left, right, joined = (repr(text_of(each, in_bytes)) for each in (*merge, "".join(merge)))
    return f"{left} + {right} = {joined}" if in_bytes else f"{left} + {right}"


def _counts_figures(storage: Storage, path: str) -> Figures:
    """Return the rules of a counts folder, its totals, and its most frequent words."""
    from bpe_beam.counts.manifest import read_manifest

    # These import pyarrow: a tokenizer is shown without them.
    from bpe_beam.jobs.corpus.summary import losses_summary, source_figures
    from bpe_beam.jobs.counts.show import WordHistograms, most_frequent

    manifest = read_manifest(storage, path)
    histograms = WordHistograms()
    words = most_frequent(
        storage, path, manifest, manifest.sources or (), _FEW, on_words=histograms.add
    )
    return {
        "kind": "counts",
        "normalizer": manifest.normalizer,
        "pretokenizer": manifest.pretokenizer,
        "special_tokens": list(manifest.special_tokens),
        "documents": manifest.documents,
        "text_bytes": manifest.text_bytes,
        "words": manifest.words,
        "unique_words": manifest.unique_words,
        "sources": source_figures(manifest.sources),
        "left_out": [_left_out(row) for row in manifest.filtered] or None,
        "rejects": dict(manifest.rejects),
        "lost": losses_summary(manifest.lost),
        "inputs": len(manifest.inputs),
        "parts": len(manifest.parts),
        "parts_bytes": sum(part.bytes for part in manifest.parts),
        "words_by_count": histograms.by_count,
        "words_by_characters": histograms.by_characters,
        "most_frequent_words": [f"{row.count:,} {row.word!r}" for row in words],
        "fingerprint": manifest.fingerprint,
    }


def _left_out(row: Filtered) -> str:
    """Return the words that a filter dropped, as a sentence."""
    words = f"{row.unique_words:,} words, {row.words:,} occurrences: those below {row.min_count:,}"
    return words if row.sources is None else f"{words} in {', '.join(row.sources)}"


def _shards_figures(storage: Storage, path: str) -> Figures:
    """Return the settings, the totals and the first documents of a folder of shards."""
    from bpe_beam.folders.receipts import require_files, to_hash
    from bpe_beam.jobs.corpus.summary import losses_summary, source_figures
    from bpe_beam.shards.dataset import open_dataset
    from bpe_beam.shards.manifest import read_manifest

    manifest = read_manifest(storage, path)
    files = [*manifest.files, *(file for shard in manifest.shards for file in shard.files)]
    require_files(storage, path, to_hash(files) if is_local(path) else manifest.files)
    tokenizer = Tokenizer.from_file(storage.join(path, SHARDS_TOKENIZER_FILE), storage=storage)
    dataset = open_dataset(storage, path)
    number = min(_DOCUMENTS, len(dataset))
    kind = "document" if manifest.sequences is None else "sequence"

    def shown(index: int) -> str:
        ids = dataset[index]
        text = tokenizer.decode(ids[:_DOCUMENT_TOKENS].tolist())
        more = " ..." if len(ids) > _DOCUMENT_TOKENS else ""
        return f"{len(ids):,} tokens: {text!r}{more}"

    # At equal distances from one another.
    sample = [len(dataset) * (2 * each + 1) // (2 * number) for each in range(number)]
    totals, texts = manifest.totals, manifest.texts_by_source
    # The text of ids that the transform WriteTokens has written is unknown.
    text_bytes = sum(each.text_bytes for each in texts.values()) or None
    tokens = sum(each.tokens for each in texts.values())
    return {
        "kind": "shards",
        "format": manifest.format,
        "shards": totals.shards,
        "sequences": manifest.sequences,
        "documents": manifest.documents,
        "tokens": totals.tokens,
        "text_bytes": text_bytes,
        "bytes_per_token": text_bytes / tokens if text_bytes and tokens else None,
        "sources": source_figures(manifest.sources_of_texts),
        "rejects": totals.rejects,
        "rejects_by_reason": manifest.rejects.by_reason,
        "lost": losses_summary(manifest.rejects.lost),
        "settings": manifest.settings,
        "arranged": _arranged(manifest),
        **_mixture(manifest),
        "columns": list(manifest.columns or ()) or None,
        "vocab_size": manifest.tokenizer.vocab_size,
        "shards_bytes": manifest.shards_bytes,
        f"first_{kind}s": [shown(index) for index in range(number)],
        "sample": [f"{kind} {index:,}, {shown(index)}" for index in sample] or None,
        "tokenizer_fingerprint": manifest.tokenizer.fingerprint,
        "plan_fingerprint": manifest.plan["fingerprint"],
    }


def _mixture(manifest: Manifest) -> Figures:
    """Return the options of a mixture, and of its documents for training the table of sources."""
    from bpe_beam.jobs.corpus.summary import mixed_figures

    mixture = manifest.mixture
    if not mixture:
        return {"mixture": None}
    options = {name: getattr(mixture, name) for name in ("seed", "identity", "duplicates", "cut")}
    is_validation = manifest.arranged and manifest.arranged.part == PARTS[1]
    return {
        "mixture": options,
        "mixture_sources": None if is_validation else mixed_figures(manifest),
    }


def _arranged(manifest: Manifest) -> Figures | None:
    """Return the arrangement of the documents in shards; None for the order of the corpus."""
    arranged = manifest.arranged
    if not arranged:
        return None
    figures = {name: getattr(arranged, name) for name in ("documents", "tokens", "padding")}
    return {**to_builtins(arranged.settings), **figures, "part": arranged.part or None}

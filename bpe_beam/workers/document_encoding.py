"""Documents to ids: settings that travel to workers, cached tokenizers, rules for documents."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import astuple, replace
from numpy.typing import NDArray

from bpe_beam.corpus.batches import PLACE_BITS
from bpe_beam.corpus.formats.interface import input_format
from bpe_beam.corpus.plan import InputFile, Plan
from bpe_beam.corpus.rejects import Reject, RejectReason
from bpe_beam.counts.word_table import string_buffers
from bpe_beam.errors import DataError, TextError, UsageError
from bpe_beam.shards.shard_rows import DocumentChanges
from bpe_beam.storage import Storage
from bpe_beam.tokenizer.components.postprocessors import Frame
from bpe_beam.tokenizer.encoding.batch_output import framed, truncated
from bpe_beam.tokenizer.tokenizer import Tokenizer

AllowedSpecial = Literal["all"] | Collection[str]

_MAX_CACHED = 4  # the most tokenizers in the cache of a process

_lock = threading.Lock()
_cached: dict[str, Tokenizer] = {}


def cached_tokenizer(tokenizer_json: str) -> Tokenizer:
    """Return the tokenizer of a file's text: one object a process."""
    data = tokenizer_json.encode()
    # The SHA-256 of the file, which is `Tokenizer.fingerprint` if `save` wrote it.
    return cached_under(hashlib.sha256(data).hexdigest(), lambda: Tokenizer.from_json(data))


def cached_under(key: str, make: Callable[[], Tokenizer]) -> Tokenizer:
    """Return the cached tokenizer of a key, or make and cache it."""
    with _lock:  # also while it is made, so that no other thread makes it too
        cached = _cached.pop(key, None)
        tokenizer = make() if cached is None else cached
        _cached[key] = tokenizer
        while len(_cached) > _MAX_CACHED:
            del _cached[next(iter(_cached))]
    return tokenizer


def _read(storage: Storage, url: str, fingerprint: str, is_exact: bool) -> Tokenizer:
    if not is_exact:
        tokenizer = Tokenizer.from_file(url, storage=storage)
        unchanged = tokenizer.fingerprint == fingerprint
    else:
        data = storage.read_bytes(url)
        unchanged = hashlib.sha256(data).hexdigest() == fingerprint
        tokenizer = Tokenizer.from_json(data)
    if not unchanged:
        raise DataError(f"{url}: the tokenizer has changed since the job began; run it again")
    return tokenizer


class DocumentRules(Struct, frozen=True):
    """What happens to documents that are empty or long."""

    # Whether documents without tokens of their text are kept or dropped.
    empty_documents: Literal["keep", "drop"] = "keep"
    # The most tokens of a document, those around it included; None: any.
    max_document_tokens: int | None = None
    # What happens to longer ones. `split`: documents of that many tokens, and a rest; the
    # tokens around it are in the first and in the last. `cut`: tokens at the end of the text
    # are left out.
    long_documents: Literal["split", "cut"] = "split"


class RuledDocuments(NamedTuple):
    """Documents after the rules, with the ids around each.

    The first part of a split document has its text, the others none.
    """

    batch: pa.RecordBatch
    ids: pa.LargeListArray
    changes: DocumentChanges


class Encoding(Struct, eq=False):
    """How documents become ids. Made by `of`; travels as the tokenizer's file and some settings."""

    tokenizer_json: str  # the content of the tokenizer's file; empty if `of` got the tokenizer
    append: str | None
    prepend: str | None
    allowed_special: AllowedSpecial
    # Whether the tokens of the tokenizer's post-processor are put around each document,
    # within `prepend` and `append`.
    add_special_tokens: bool = False
    rules: DocumentRules = DocumentRules()
    _tokenizer: Tokenizer | None = None
    _file: tuple[Storage, str, str, bool] | None = None

    @staticmethod
    def of(
        tokenizer: Tokenizer | None,
        *,
        append: str | None = None,
        prepend: str | None = None,
        allowed_special: str | Collection[str] = (),
        add_special_tokens: bool = False,
        **rules: Any,
    ) -> Encoding:
        """Return the encoding with a tokenizer, after a check of the settings.

        Without one, each call of `encode` names a tokenizer.
        """
        if not isinstance(tokenizer, Tokenizer | None):
            raise UsageError(
                f"tokenizer must be a Tokenizer, got {type(tokenizer).__name__}: "
                "Tokenizer.from_file(path) reads one"
            )
        if isinstance(allowed_special, str):
            allowed: AllowedSpecial = "all" if allowed_special == "all" else ()
            if allowed_special not in ("all", "none"):
                raise UsageError(
                    "allowed_special must be 'all', 'none' or a list of tokens, got "
                    f"{allowed_special!r}"
                )
        else:
            allowed = tuple(allowed_special)
        chosen = DocumentRules(**rules)
        encoding = Encoding("", append, prepend, allowed, add_special_tokens, chosen)
        if tokenizer is None:
            return encoding
        with ThreadPoolExecutor(1) as thread:
            # The native encoder is made next to the file, for large vocabularies in half the time.
            checked = thread.submit(tokenizer.encode, "", allowed_special=allowed)
            cached = cached_under(tokenizer.fingerprint, lambda: tokenizer)
            checked.result()
        encoding._tokenizer = cached
        around = sum(map(len, encoding.frame(tokenizer)))
        if chosen.max_document_tokens is not None and chosen.max_document_tokens <= around:
            raise UsageError(
                f"must be more than {around}, the number of tokens around each document, got "
                f"{chosen.max_document_tokens}",
                ("max_document_tokens",),
            )
        return encoding

    def kept_at(self, storage: Storage, url: str, *, is_exact: bool = True) -> Encoding:
        """Return the same encoding without the file's content; workers read the file from storage.

        Some runners limit the size of a job's description, and large tokenizers are larger.
        `is_exact`: whether the file is what `Tokenizer.save` writes, and not one that
        `Tokenizer.from_file` reads.
        """
        encoding = replace(self)
        encoding._tokenizer = self.tokenizer()
        encoding._file = (storage, url, self.tokenizer().fingerprint, is_exact)
        return encoding

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer, which is made once a process."""
        if self._tokenizer is None:
            if self._file is None:
                self._tokenizer = cached_tokenizer(self.tokenizer_json)
            else:
                file = self._file
                self._tokenizer = cached_under(file[2], lambda: _read(*file))
        return self._tokenizer

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the settings alone: a tokenizer is made again where it is needed."""
        text = self.tokenizer_json
        if self._tokenizer is not None and self._file is None:
            text = text or self._tokenizer.to_json()
        return Encoding, astuple(replace(self, tokenizer_json=text, _tokenizer=None))

    @property
    def has_tokenizer(self) -> bool:
        """False if each call of `encode` names a tokenizer."""
        return bool(self.tokenizer_json or self._tokenizer or self._file)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings but for the rules, as the manifest of a tokens folder has them."""
        allowed = self.allowed_special
        return {
            "append": self.append,
            "prepend": self.prepend,
            "allowed_special": allowed if isinstance(allowed, str) else list(allowed) or "none",
            **({"add_special_tokens": True} if self.add_special_tokens else {}),
        }

    def frame(self, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
        """Return the ids before and after each document."""
        before, after = self.frame_tokens(tokenizer)
        return [token_id for _, token_id in before], [token_id for _, token_id in after]

    def frame_tokens(self, tokenizer: Tokenizer) -> Frame:
        """Return the tokens before and after each document, each with its id."""
        before = _token("prepend", self.prepend, tokenizer)
        after = _token("append", self.append, tokenizer)
        if not self.add_special_tokens:
            return before, after
        processor = tokenizer.spec.post_processor
        first, last = ([], []) if processor is None else processor.frame()
        if not first and not last:
            raise UsageError(
                "has no effect: the post-processor of the tokenizer adds no tokens",
                ("add_special_tokens",),
                "name the tokens with {prepend} and {append}",
            )
        for name, own, added in (("prepend", before, first), ("append", after, last)):
            if own and own[0] in added:
                raise UsageError(
                    f"must not be {own[0][0]}, which the post-processor of the tokenizer adds "
                    "too: it would be there twice",
                    (name,),
                    "leave it out, or {add_special_tokens}",
                )
        return before + first, last + after

    @property
    def left_out(self) -> str | None:
        """The tokens of the post-processor, in words, if no token is put around documents."""
        processor = self.tokenizer().spec.post_processor
        if self.add_special_tokens or processor is None or self.append or self.prepend:
            return None
        sides = [
            f"{' '.join(token for token, _ in tokens)} {side}"
            for tokens, side in zip(processor.frame(), ("before", "after"), strict=True)
            if tokens
        ]
        if not sides:
            return None
        return (
            f"the tokenizer's post-processor has {' and '.join(sides)} each text; no token is put "
            "around documents here"
        )

    def doubled_warning(self, doubled: int, documents: int) -> str | None:
        """Return a warning if texts have the tokens that are put around documents."""
        if not doubled:
            return None
        before, after = self.frame_tokens(self.tokenizer())
        tokens = ", ".join(dict.fromkeys(token for token, _ in before + after))
        return (
            f"{doubled:,} of {documents:,} documents have a token at the start or the end of their "
            f"text that is put there too ({tokens}): it is there twice. Remove it from the texts, "
            "leave out --prepend, --append or --add-special-tokens, or do not allow it in the text "
            "with --allowed-special"
        )

    def encode(self, texts: pa.Array, tokenizer: Tokenizer | None = None) -> pa.LargeListArray:
        """Return the ids of each text, with the ids before and after it, whatever the rules."""
        tokenizer = tokenizer or self.tokenizer()
        try:
            ids = tokenizer.encode_batch(
                texts, allowed_special=self.allowed_special, output="arrow"
            )
        except TextError as error:
            raise DataError(f"a document cannot be encoded: {error.reason}") from None
        return framed(ids, *self.frame(tokenizer))


def _token(name: str, token: str | None, tokenizer: Tokenizer) -> list[tuple[str, int]]:
    if token is None:
        return []
    token_id = tokenizer.token_to_id(token)
    if token_id is None:
        raise UsageError(
            f"must be a token of the tokenizer, got {token!r}",
            (name,),
            "inspect shows its special tokens, and train --special-token makes one",
        )
    return [(token, token_id)]


def encode_documents(
    encoding: Encoding,
    batch: pa.RecordBatch,
    plan: Plan,
    on_reject: Callable[[Reject], None],
    max_tokens: int,
) -> RuledDocuments:
    """Encode documents by the rules for them, and reject those too long for a shard's index.

    A record has at most 2^31 - 1 bytes, but a normalizer, or the bytes of unknown characters, may
    make a longer document of it.

    Returns:
        The documents that are left, the ids of each, and what was changed.
    """
    try:
        encoded = encoding.tokenizer().encode_batch(
            batch.column("text"), allowed_special=encoding.allowed_special, output="arrow"
        )
    except TextError as error:
        raise DataError(f"{_record(batch, error.number, plan)}: {error.reason}") from None
    frame = encoding.frame(encoding.tokenizer())
    ruled = apply_rules(encoding.rules, batch, encoded, *frame)
    batch, ids, changes = ruled
    lengths = np.diff(ids.offsets.to_numpy())
    if lengths.max(initial=0) <= max_tokens:
        return ruled
    fits = lengths <= max_tokens
    for number in np.flatnonzero(~fits).tolist():
        on_reject(_reject(batch, number, plan, int(lengths[number]), max_tokens))
    kept: NDArray[np.int64] = np.flatnonzero(fits)
    return RuledDocuments(batch.take(pa.array(kept)), ids.take(pa.array(kept)), changes)


def _reject(batch: pa.RecordBatch, number: int, plan: Plan, tokens: int, max_tokens: int) -> Reject:
    text = batch.column("text")[number].as_py().encode("utf-8", "surrogatepass")
    detail = f"the document has {tokens:,} tokens; a shard holds at most {max_tokens:,} a document"
    file, at = _position(batch, number, plan) or (plan.files[plan.splits[0].slices[0].file], None)
    kind = "row" if input_format(file.format).columnar else "offset"
    return Reject.of(file.name, RejectReason.TOO_MANY_TOKENS, detail, text, **{kind: at})


def _position(batch: pa.RecordBatch, number: int, plan: Plan) -> tuple[InputFile, int] | None:
    """Return the file of a document and its byte or row there; None if they are unknown."""
    place = batch.column("place")[number].as_py()
    if place is None:
        return None
    return plan.files[place >> PLACE_BITS], place & ((1 << PLACE_BITS) - 1)


def _record(batch: pa.RecordBatch, number: int, plan: Plan) -> str:
    """Return the name of a record in errors: its position, or its id if that is unknown."""
    position = _position(batch, number, plan)
    if position is None:
        name = batch.column("id")[number].as_py()
        files = ", ".join(plan.files[part.file].name for part in plan.splits[0].slices[:3])
        return f"the record {name}" if name else f"a record without an id in {files}"
    file, at = position
    unit = "row" if input_format(file.format).columnar else "byte"
    return f"{file.name}: the record at {unit} {at:,}"


def apply_rules(
    rules: DocumentRules,
    batch: pa.RecordBatch,
    ids: pa.LargeListArray,
    before: list[int],
    after: list[int],
) -> RuledDocuments:
    """Apply the rules to a batch of documents, and put ids around each."""
    dropped = cut = split = 0
    if rules.empty_documents == "drop":
        kept = np.flatnonzero(_lengths(ids))
        dropped = len(ids) - kept.size
        if dropped:
            batch, ids = batch.take(pa.array(kept)), ids.take(pa.array(kept))
    most = rules.max_document_tokens
    if most is not None and rules.long_documents == "cut":
        room = most - len(before) - len(after)
        cut = int(np.count_nonzero(_lengths(ids) > room))
        ids = truncated(ids, room) if cut else ids
    doubled = _doubled(ids, before, after)
    ids = framed(ids, before, after)
    if most is not None and rules.long_documents == "split":
        parts = -(-_lengths(ids) // most)
        split = int(np.count_nonzero(parts > 1))
        if split:
            batch, ids = _split(batch, ids, np.maximum(parts, 1), most)
    return RuledDocuments(batch, ids, DocumentChanges(dropped, cut, split, doubled))


def _lengths(ids: pa.LargeListArray) -> NDArray[np.int64]:
    return np.diff(ids.offsets.to_numpy())  # type: ignore[no-any-return]


def _doubled(ids: pa.LargeListArray, before: list[int], after: list[int]) -> int:
    """Return how many documents begin with an id of `before`, or end with one of `after`."""
    if not before and not after:
        return 0
    offsets, values = ids.offsets.to_numpy(), ids.values.to_numpy()
    used = np.flatnonzero(offsets[:-1] < offsets[1:])
    is_doubled = np.zeros(used.size, np.bool_)
    for added, positions in ((before, offsets[used]), (after, offsets[used + 1] - 1)):
        at_end = values[positions]
        for token in added:
            is_doubled |= at_end == token
    return int(np.count_nonzero(is_doubled))


def _split(
    batch: pa.RecordBatch, ids: pa.LargeListArray, parts: NDArray[np.int64], most: int
) -> tuple[pa.RecordBatch, pa.LargeListArray]:
    """Split documents into so many parts of at most `most` ids."""
    rows = np.repeat(np.arange(len(ids)), parts)
    number = np.arange(rows.size) - np.repeat(np.cumsum(parts) - parts, parts)
    offsets = np.append(ids.offsets.to_numpy()[:-1][rows] + most * number, len(ids.values))
    # Parts without a text begin where it ends: a long text is not copied for each of its parts.
    data, ends = string_buffers(batch["text"])
    starts = np.append(ends[rows + (number > 0)], ends[-1])
    text = pa.LargeStringArray.from_buffers(rows.size, pa.py_buffer(starts), data)
    columns = [
        text if name == "text" else batch[name].take(pa.array(rows)) for name in batch.schema.names
    ]
    return (
        pa.RecordBatch.from_arrays(columns, schema=batch.schema),
        pa.LargeListArray.from_arrays(pa.array(offsets), ids.values),
    )

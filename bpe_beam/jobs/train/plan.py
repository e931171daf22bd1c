"""The plan of a train job, resolved before it trains: recipe, base tokenizer, counts, identity."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from bpe_beam.counts.manifest import CountsManifest, read_hashed_manifest
from bpe_beam.counts.part_files import added_up, iter_words
from bpe_beam.counts.weights import (
    Weights,
    parse_temperature,
    parse_weight,
    weights_of,
    weights_of_shares,
)
from bpe_beam.counts.word_counts import WordCounts
from bpe_beam.errors import UsageError, parameter_renamed, require
from bpe_beam.folders.folder_checks import refuse_own_folder
from bpe_beam.folders.output_folder import COUNTS
from bpe_beam.settings.count import CountSettings
from bpe_beam.settings.field import identity_of
from bpe_beam.settings.train import TrainingSettings
from bpe_beam.storage import Storage, redact
from bpe_beam.storage.json_file import JsonObject
from bpe_beam.storage.names import absolute
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.pretokenizers import is_byte_level_name
from bpe_beam.tokenizer.tokenizer import Tokenizer
from bpe_beam.training import tokenizer_parts
from bpe_beam.training.merges.initial_vocabulary import check_distributed
from bpe_beam.training.recipe import (
    DEFAULT_TIE_BREAK,
    BpeRecipe,
    MinGramRecipe,
    PieceRecipe,
    Recipe,
    UnigramRecipe,
    WordLevelRecipe,
    WordPieceRecipe,
)

if TYPE_CHECKING:
    from bpe_beam.shards.mixture import MixtureOptions

ROUNDS = "rounds"  # the folder in the output that has the words between rounds

_UNKNOWN_TOKENS = {
    "prefix_bpe": "[UNK]",
    "wordpiece": "[UNK]",
    "word_level": "<unk>",
    "unigram": "<unk>",
    "mingram": "<unk>",
}
_WORDPIECE_PREFIX = "##"
_TEMPLATE = "chat_template"
_MAX_TEMPLATE_BYTES = 1 << 20


class PlannedCounts(msgspec.Struct, frozen=True):
    """The counts folder that a job trains from."""

    folder: str  # its path or URL, as the summary names it
    manifest: CountsManifest
    sha256: str  # SHA-256 of the manifest's file, in hex
    weights: Weights | None
    in_memory: WordCounts | None = None  # the words of counts that are in no folder

    @property
    def url(self) -> str:
        """The folder as workers on other machines name it."""
        return absolute(self.folder)

    @property
    def factors(self) -> dict[str, int] | None:
        """The number that each source's counts are multiplied by; None: no weights."""
        return None if self.weights is None else self.weights.factors

    def words(self, storage: Storage) -> Iterator[pa.Table]:
        """Yield the words in order, some at a time, their counts weighted; see `iter_words`."""
        if self.in_memory is None:
            yield from iter_words(storage, self.folder, self.manifest, self.factors)
        else:
            yield added_up(self.in_memory.tables, self.manifest.with_places, self.factors)


class TrainingPlan(msgspec.Struct, frozen=True):
    """The plan of a train job; `counts` is None while the corpus is not counted yet."""

    settings: TrainingSettings
    storage: Storage
    recipe: Recipe
    base_tokenizer: Tokenizer | None
    counts: PlannedCounts | None = None
    chat_template: bytes | None = None
    mixture: MixtureOptions | None = None  # of the file that gives the weights

    @property
    def identity(self) -> dict[str, object]:
        """The settings that the tokenizer depends on, without the words."""
        base, template = self.base_tokenizer, self.chat_template
        return {
            # The recipe has all settings that matter, except the model's name.
            "model": self.settings.model,
            **msgspec.structs.asdict(self.recipe),
            **({} if base is None else {"continued": base.fingerprint}),
            **_identity_of_weights(self.settings, self.mixture),
            **identity_of(self.settings),
            **({} if template is None else {"chat_template": hashlib.sha256(template).hexdigest()}),
        }

    @property
    def added_tokens(self) -> tuple[AddedToken, ...]:
        """The added tokens of the base tokenizer, which are extracted as in encoding."""
        return () if self.base_tokenizer is None else self.base_tokenizer.spec.added_tokens

    @property
    def extracted(self) -> tuple[str, ...]:
        """The tokens that counting the corpus extracts."""
        added = (token.content for token in self.added_tokens)
        return tuple(dict.fromkeys((*self.settings.all_special_tokens, *added)))

    @property
    def rounds(self) -> str:
        """The folder of merge rounds; other trainings do not have it."""
        return self.storage.join(self.settings.folder, ROUNDS)

    @property
    def minimum_entries(self) -> int:
        """The minimum number of entries of the vocabulary, whatever the words are."""
        recipe = self.recipe
        if self.base_tokenizer is not None:
            return len(set(recipe.specials).union(self.base_tokenizer.vocab))
        if isinstance(recipe, PieceRecipe):
            return len(recipe.reserved) + 1
        fixed = 0
        if isinstance(recipe, BpeRecipe):
            fixed = 256 if recipe.all_bytes and recipe.limit_alphabet is None else 0
            fixed += 256 if recipe.byte_fallback else 0
        # A special token of one character may be a symbol of the alphabet already.
        single = fixed > 0
        return max(1, fixed + sum(len(token) > 1 or not single for token in recipe.specials))

    @property
    def for_sentencepiece(self) -> bool:
        """Whether words are split as in SentencePiece, so that it can read the tokenizer."""
        settings, counts = self.settings, self.counts
        named = (settings.corpus_normalizer, settings.corpus_pretokenizer)
        if counts is not None:
            named = (counts.manifest.normalizer, counts.manifest.pretokenizer)
        models = ("bpe", "unigram", "mingram")
        return self.settings.model in models and named == ("dummy_prefix", "metaspace")

    def with_counts(self, folder: str) -> TrainingPlan:
        counts = _planned_counts(self.storage, folder, self.settings, self.mixture)
        return replace(self, counts=counts)

    def with_parts(self, number: int) -> TrainingPlan:
        """Return the plan with the first parts of its counts only."""
        assert self.counts is not None
        parts = self.counts.manifest.parts[:number]
        manifest = msgspec.structs.replace(
            self.counts.manifest,
            parts=parts,
            unique_words=sum(part.unique_words for part in parts),
            word_bytes=sum(part.word_bytes for part in parts),
        )
        return replace(self, counts=replace(self.counts, manifest=manifest))

    @property
    def counting(self) -> CountSettings:
        """The settings of counting the corpus into the output."""
        settings = self.settings
        assert settings.input is not None
        return CountSettings(
            input=settings.input,
            output=self.storage.join(settings.folder, COUNTS),
            run=settings.run,
            normalizer=settings.corpus_normalizer,
            pretokenizer=settings.corpus_pretokenizer,
            special_tokens=self.extracted,
            tie_break=settings.tie_break or DEFAULT_TIE_BREAK,
        )


def plan_training(
    settings: TrainingSettings, storage: Storage, in_memory: WordCounts | None = None
) -> TrainingPlan:
    """Return the plan: everything that is known before the first word is read.

    It has counts if there are some in memory, or the settings name a counts folder.
    """
    base = None
    if settings.continue_from is not None:
        base = Tokenizer.from_file(settings.continue_from, storage=storage)
        _check_roles(settings.roles, base)
    mixture = _read_mixture(settings, storage)
    counts = None
    normalizer, pretokenizer = settings.corpus_normalizer, settings.corpus_pretokenizer
    extracted = settings.all_special_tokens
    if in_memory is not None:
        weights = _weights_of(settings, in_memory.manifest, mixture)
        counts = PlannedCounts("", in_memory.manifest, "", weights, in_memory)
    elif settings.counts is not None:
        refuse_own_folder(settings.folder, (settings.counts,), inside=True)
        counts = _planned_counts(storage, settings.counts, settings, mixture)
    if counts is not None:
        manifest = counts.manifest
        _check_words(settings, manifest)
        normalizer, pretokenizer = manifest.normalizer, manifest.pretokenizer
        extracted = manifest.special_tokens
    recipe = _recipe_of(settings, normalizer, pretokenizer, extracted, base)
    chat_template = _read_chat_template(storage, settings.chat_template)
    plan = TrainingPlan(settings, storage, recipe, base, counts, chat_template, mixture)
    if recipe.vocab_size < plan.minimum_entries:
        raise UsageError(
            f"must be at least {plan.minimum_entries:,} (the alphabet and the special tokens), "
            f"got {recipe.vocab_size:,}",
            ("vocab_size",),
        )
    if counts is None and settings.merge_rounds == "distributed":
        check_distributed(recipe)
    return plan


def _check_roles(roles: Mapping[str, str], base: Tokenizer) -> None:
    """Refuse a role for an added token of the base tokenizer that is not special."""
    plain = {token.content for token in base.spec.added_tokens if not token.special}
    for role, token in roles.items():
        require(
            token not in plain,
            f"must be a special token, got {token!r}, which the base tokenizer extracts from all "
            "texts",
            role,
        )


def _read_chat_template(storage: Storage, path: str | None) -> bytes | None:
    if path is None:
        return None
    if not storage.exists(path):
        raise UsageError(f"must be a file, got {redact(path)}, which does not exist", (_TEMPLATE,))
    if (size := storage.size(path)) == 0:
        raise UsageError(f"must be a template, got {redact(path)}, which is empty", (_TEMPLATE,))
    require(
        size <= _MAX_TEMPLATE_BYTES,
        f"must have at most {_MAX_TEMPLATE_BYTES:,} bytes, got {redact(path)} of {size:,}",
        _TEMPLATE,
    )
    data = storage.read_bytes(path)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"must be UTF-8, got another byte at {error.start:,}", (_TEMPLATE,)
        ) from None
    return data


def _planned_counts(
    storage: Storage, folder: str, settings: TrainingSettings, mixture: MixtureOptions | None
) -> PlannedCounts:
    manifest, sha256 = read_hashed_manifest(storage, folder)
    return PlannedCounts(folder, manifest, sha256, _weights_of(settings, manifest, mixture))


def _numerators(settings: TrainingSettings) -> dict[str, int]:
    return {name: parse_weight(name, weight) for name, weight in settings.weights}


def _read_mixture(settings: TrainingSettings, storage: Storage) -> MixtureOptions | None:
    if settings.mixture is None:
        return None
    from bpe_beam.shards.mixture import read_mixture  # few trainings need it

    return read_mixture(storage, settings.mixture)


def _identity_of_weights(
    settings: TrainingSettings, mixture: MixtureOptions | None
) -> dict[str, object]:
    if settings.temperature is not None:
        return {"temperature": f"{parse_temperature(settings.temperature):f}"}
    if mixture is not None:
        shares = _shares(mixture, None)
        return {"weights": {name: str(share) for name, share in shares.items()}}
    return {"weights": dict(sorted(_numerators(settings).items()))} if settings.weights else {}


def _shares(options: MixtureOptions, sources: list[str] | None) -> dict[str, Fraction]:
    """Return the shares of a mixture's sources, which are among `sources` unless that is None."""
    names = [name for name, _ in (*options.share, *options.tokens_of)]
    with parameter_renamed("share", "weights"), parameter_renamed("tokens_of", "weights"):
        return options.shares(names if sources is None else sources)


def _weights_of(
    settings: TrainingSettings, manifest: CountsManifest, mixture: MixtureOptions | None
) -> Weights | None:
    """Return the weights of all sources of counts; None if the settings name no weights."""
    if not settings.weights and settings.temperature is None:
        return None
    if manifest.sources is None:
        raise UsageError(
            "must have counts by source, and these are not",
            ("weights" if settings.temperature is None else "temperature",),
            "count again with {sources} or {source_field}",
        )
    if mixture is not None:
        shares = _shares(mixture, [*manifest.sources])
        return weights_of_shares(shares, manifest.sources)
    temperature = None if settings.temperature is None else parse_temperature(settings.temperature)
    return weights_of(_numerators(settings), temperature, manifest.sources)


def _check_words(settings: TrainingSettings, manifest: CountsManifest) -> None:
    """Refuse a normalizer or pre-tokenizer that differs from the counts."""
    for name in ("normalizer", "pretokenizer"):
        wanted, counted = getattr(settings, name), getattr(manifest, name)
        if wanted not in (None, counted):
            raise UsageError(
                f"must be {counted!r}, as in the counts, got {wanted!r}",
                (name,),
                "leave it out, or count again",
            )


def _recipe_of(
    settings: TrainingSettings,
    normalizer: str,
    pretokenizer: str,
    extracted: tuple[str, ...],
    base: Tokenizer | None,
) -> Recipe:
    """Return the recipe; the special tokens that counting extracts come first."""
    common: JsonObject = {
        "vocab_size": settings.vocab_size,
        "min_frequency": settings.min_frequency,
        "special_tokens": tuple(dict.fromkeys((*extracted, *settings.all_special_tokens))),
        "unk_token": settings.unk_token or _UNKNOWN_TOKENS.get(settings.model),
        "template": settings.template or "",
    }
    merging: JsonObject = {
        **common,
        "tie_break": settings.tie_break or DEFAULT_TIE_BREAK,
        "initial_alphabet": tuple(dict.fromkeys(settings.initial_alphabet or "")),
        "limit_alphabet": settings.limit_alphabet,
        "max_token_length": settings.max_token_length,
        "continuing_subword_prefix": settings.continuing_subword_prefix or _WORDPIECE_PREFIX,
    }
    recipe: Recipe
    if settings.model == "word_level":
        recipe = WordLevelRecipe(**common)
    elif settings.model == "wordpiece":
        recipe = WordPieceRecipe(**merging)
    elif settings.model == "prefix_bpe":
        recipe = BpeRecipe(**merging, symbols="characters", alphabet="seen", for_wordpiece=True)
    elif settings.model in ("unigram", "mingram"):
        recipe = _piece_recipe(settings, common)
    elif base is not None:
        tokenizer_parts.check_same_words(base, normalizer, pretokenizer)
        del merging["unk_token"], merging["continuing_subword_prefix"]
        in_bytes = base.spec.model_reads_bytes
        like = BpeRecipe(**merging, symbols="bytes" if in_bytes else "characters")
        recipe = tokenizer_parts.recipe_like(base, like)
        tokenizer_parts.check_continued(base, recipe)
        return recipe
    else:
        recipe = _bpe_recipe(settings, pretokenizer, merging)
    tokenizer_parts.check_parts(recipe, normalizer, pretokenizer)
    return recipe


def _piece_recipe(settings: TrainingSettings, common: JsonObject) -> PieceRecipe:
    common |= {
        "initial_alphabet": tuple(dict.fromkeys(settings.initial_alphabet or "")),
        "character_coverage": settings.character_coverage,
        "max_piece_length": settings.max_piece_length,
        "split_by_unicode_script": settings.split_by_unicode_script,
        "byte_fallback": settings.byte_fallback,
    }
    if settings.model == "mingram":
        return MinGramRecipe(**common, overshoot_factor=settings.overshoot_factor)
    return UnigramRecipe(
        **common,
        seed_size=settings.seed_size,
        shrinking_factor=settings.shrinking_factor,
        sub_iterations=settings.sub_iterations,
    )


def _bpe_recipe(settings: TrainingSettings, pretokenizer: str, merging: JsonObject) -> BpeRecipe:
    symbols = settings.symbols
    if symbols is None:
        in_bytes = settings.alphabet == "bytes" or is_byte_level_name(pretokenizer)
        symbols = "bytes" if in_bytes else "characters"
    merging["continuing_subword_prefix"] = settings.continuing_subword_prefix or ""
    recipe = BpeRecipe(
        **merging,
        symbols=symbols,  # type: ignore[arg-type]
        alphabet=settings.alphabet  # type: ignore[arg-type]
        or ("bytes" if symbols == "bytes" else "seen"),
        end_of_word_suffix=settings.end_of_word_suffix or "",
        end_of_word_symbol=settings.end_of_word_symbol or "",
        byte_fallback=settings.byte_fallback,
    )
    if recipe.all_bytes and recipe.limit_alphabet is not None and recipe.limit_alphabet < 256:
        raise UsageError(
            f"must be at least 256 with the alphabet of all bytes, got {recipe.limit_alphabet}",
            ("limit_alphabet",),
            "give {alphabet} seen or {symbols} characters with it",
        )
    return recipe

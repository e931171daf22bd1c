"""The classes of `transformers` that build a tokenizer from other files than a `tokenizer.json`.

CLASSES is the table of supported classes: which files and settings each reads, with its defaults.
A class builds what version 4.57 builds; docs/tokenizers.md lists where version 5 differs.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components import decoders, normalizers, postprocessors, pretokenizers
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.models import BPE, Model, SentencePiece, Unigram, WordPiece
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.spec import TokenizerSpec

SENTENCEPIECE = "a .model file"
VOCAB_AND_MERGES = "vocab.json and merges.txt"
VOCAB_TXT = "vocab.txt"

SPECIAL_LISTS = ("additional_special_tokens", "extra_special_tokens")
"""The settings that list special tokens without a role."""

EXTRA_ID = "<extra_id_"

_SPACE = "\u2581"
_END = "<|endoftext|>"
_CLEAN_UP = {"clean_up_tokenization_spaces": False}
_ADD = {"add_bos_token": False, "add_eos_token": False}


class Chosen(Struct, frozen=True):
    """The settings of a folder, with a class's defaults."""

    roles: Mapping[str, str]  # special tokens by role
    values: Mapping[str, Any]  # the other settings by name
    lists: Sequence[str]  # special tokens without a role


class PublishedClass(Struct, frozen=True):
    """A class of `transformers`."""

    files: str  # what it reads: SENTENCEPIECE, VOCAB_AND_MERGES or VOCAB_TXT
    model_types: str  # the `model_type` of the models whose tokenizer it is, with blanks
    roles: Mapping[str, str]  # its special tokens by role, where the folder names no other
    settings: Mapping[str, Any]  # its other settings, and their defaults
    # Returns the tokenizer from the model in the files, with the added tokens that the model knows,
    # and without a post-processor. The model is a SentencePiece with the table of replacements, a
    # tokenizer with a BPE, or the vocabulary of a WordPiece.
    build: Callable[[Any, Chosen], TokenizerSpec]
    # Returns the post-processor, from the settings and a function that gives a token's id
    frame: Callable[[Chosen, Callable[[str], int]], postprocessors.PostProcessor | None]
    # Settings that one version follows and the other ignores, and the value that both have; another
    # one is refused
    fixed: Mapping[str, bool] = {}
    strips_left: tuple[str, ...] = ()  # the roles whose token includes the spaces before it
    listed: Callable[[Chosen], Sequence[str]] = lambda chosen: chosen.lists  # those without a role


def _of_sentencepiece(model: SentencePiece, unknown_id: int | None, fallback: bool) -> Model:
    """Return Hugging Face's model for a model of SentencePiece."""
    ((unknown, own_id),) = model.of_kind("unknown").items()
    if model.algorithm == "unigram":
        if unknown_id not in (None, own_id):
            raise UsageError(
                f"the unknown piece must have the id {unknown_id} for this class, got {own_id}"
            )
        return Unigram([(text, score) for text, score, _ in model.pieces], own_id, fallback)
    # The fewest merges, if they are known to give what the scores give: a .model can have them.
    from bpe_beam.tokenizer.files.sentencepiece_file import merges_of

    merges = merges_of(model)
    if merges is None:
        texts = [text for text, _, _ in model.pieces]
        rows = sorted(
            model.merge_rows(), key=lambda row: (row[3], -len(texts[row[0]]), -len(texts[row[1]]))
        )
        merges = [(texts[left], texts[right]) for left, right, _, _ in rows]
    return BPE(model.vocab, merges, unk_token=unknown, fuse_unk=True, byte_fallback=fallback)


def _known_added(model: SentencePiece, special: Sequence[str] = ()) -> tuple[AddedToken, ...]:
    """Return the pieces of SentencePiece that Hugging Face extracts from the text."""
    return tuple(
        AddedToken(token_id, text, special=kind == "control" or text in special)
        for token_id, (text, _, kind) in enumerate(model.pieces)
        if kind in ("control", "user_defined")
    )


def _spaces_decoder(strip: bool) -> decoders.Decoder:
    """Return the decoder of pieces with byte fallback."""
    end: tuple[decoders.Decoder, ...] = (decoders.StripDecoder(" ", 1, 0),) if strip else ()
    restore = decoders.ReplaceDecoder(Pattern(text=_SPACE), " ")
    return decoders.SequenceDecoder((restore, decoders.ByteFallback(), decoders.Fuse(), *end))


def _cleaned(decoder: decoders.Decoder, chosen: Chosen) -> decoders.Decoder:
    """Return the decoder that also removes spaces before punctuation, if the folder says so."""
    if not chosen.values["clean_up_tokenization_spaces"]:
        return decoder
    changes = (
        decoders.ReplaceDecoder(Pattern(text=written.decode()), text.decode())
        for written, text in decoders.CLEANUP
        if written != b" do not"
    )
    return decoders.SequenceDecoder((decoder, decoders.Fuse(), *changes))


def _scheme(chosen: Chosen) -> str:
    """Return which texts get a space in front."""
    with_prefix = "always" if chosen.values["legacy"] else "first"
    return with_prefix if chosen.values["add_prefix_space"] else "never"


def _llama(read: tuple[SentencePiece, bytes], chosen: Chosen) -> TokenizerSpec:
    model, _ = read
    prefix = chosen.values.get("add_prefix_space", True)
    if chosen.values.get("legacy", True):
        escape = normalizers.Replace(Pattern(text=" "), _SPACE)
        start = (normalizers.Prepend(_SPACE),) if prefix else ()
        parts: dict[str, Any] = {"normalizer": normalizers.NormalizerSequence((*start, escape))}
    else:
        metaspace = pretokenizers.Metaspace(prepend_scheme=_scheme(chosen), split=False)
        parts = {"pre_tokenizer": metaspace}
    decoder = _spaces_decoder(prefix)
    return TokenizerSpec(
        _of_sentencepiece(model, 0, True), _known_added(model), decoder=decoder, **parts
    )


def _gemma(read: tuple[SentencePiece, bytes], chosen: Chosen) -> TokenizerSpec:
    model, _ = read
    return TokenizerSpec(
        _of_sentencepiece(model, 3, True),
        _known_added(model, ("<start_of_turn>", "<end_of_turn>")),
        normalizer=normalizers.Replace(Pattern(text=" "), _SPACE),
        pre_tokenizer=pretokenizers.Split(Pattern(text=" "), "MergedWithPrevious", False),
        decoder=_spaces_decoder(False),
    )


def _t5(read: tuple[SentencePiece, bytes], chosen: Chosen) -> TokenizerSpec:
    model, charsmap = read
    if model.algorithm != "unigram":
        raise UsageError("the .model must have the type unigram for this class, got bpe")
    unigram = _of_sentencepiece(model, None, False)
    assert isinstance(unigram, Unigram)
    extra = [(f"{EXTRA_ID}{n}>", 0.0) for n in reversed(range(chosen.values["extra_ids"]))]
    changes = (normalizers.Precompiled(b64encode(charsmap).decode()),) if charsmap else ()
    steps = (normalizers.Strip(False, True), normalizers.Replace(Pattern(regex=" {2,}"), _SPACE))
    return TokenizerSpec(
        replace(unigram, pieces=[*unigram.pieces, *extra]),
        _known_added(model),
        normalizer=normalizers.NormalizerSequence((*changes, *steps)),
        pre_tokenizer=pretokenizers.Metaspace(prepend_scheme=_scheme(chosen)),
        decoder=_cleaned(decoders.MetaspaceDecoder(prepend_scheme=_scheme(chosen)), chosen),
    )


def _t5_listed(chosen: Chosen) -> Sequence[str]:
    """Return the special tokens without a role, among which the extra ids are all or none."""
    count = chosen.values["extra_ids"]
    named = sum(EXTRA_ID in token for token in chosen.lists)
    if named and count and named != count:
        raise UsageError(
            f"extra_ids must be the number of {EXTRA_ID}N> that are listed, {named}, got {count}"
        )
    return chosen.lists if named else [*chosen.lists, *(f"{EXTRA_ID}{n}>" for n in range(count))]


def _byte_level(read: TokenizerSpec, chosen: Chosen) -> TokenizerSpec:
    prefix = chosen.values["add_prefix_space"]
    return replace(read, pre_tokenizer=pretokenizers.ByteLevelPreTokenizer(add_prefix_space=prefix))


def _qwen2(read: TokenizerSpec, chosen: Chosen) -> TokenizerSpec:
    words = pretokenizers.pretokenizer_from_name("qwen2", byte_level=True)
    return replace(read, normalizer=normalizers.NFC(), pre_tokenizer=words)


def _bert(read: dict[str, int], chosen: Chosen) -> TokenizerSpec:
    unknown = chosen.roles.get("unk_token", "null")
    if unknown not in read:
        raise UsageError(f"unk_token must be in vocab.txt for this class, got {unknown}")
    return TokenizerSpec(
        WordPiece(read, unknown),
        normalizer=normalizers.BertNormalizer(
            handle_chinese_chars=chosen.values["tokenize_chinese_chars"],
            strip_accents=chosen.values["strip_accents"],
            lowercase=chosen.values["do_lower_case"],
        ),
        pre_tokenizer=pretokenizers.BertPreTokenizer(),
        decoder=_cleaned(decoders.WordPieceDecoder(), chosen),
    )


def _bos_and_eos(
    chosen: Chosen, id_of: Callable[[str], int]
) -> postprocessors.PostProcessor | None:
    before, after = (
        [chosen.roles[role]] if chosen.values.get(f"add_{role}") and role in chosen.roles else []
        for role in ("bos_token", "eos_token")
    )
    return postprocessors.template_of(before, after, id_of) if before or after else None


def _t5_frame(chosen: Chosen, id_of: Callable[[str], int]) -> postprocessors.PostProcessor | None:
    if (eos := chosen.roles.get("eos_token")) != "</s>":
        raise UsageError(
            f"eos_token must be </s> for this class, got {eos}: transformers 4.57 ends texts with "
            "</s>, and 5 with the other one"
        )
    return postprocessors.template_of((), (eos,), id_of)


def _cls_and_sep(chosen: Chosen, id_of: Callable[[str], int]) -> postprocessors.BertProcessing:
    missing = [role for role in ("cls_token", "sep_token") if role not in chosen.roles]
    if missing:
        raise UsageError(f"{missing[0]} must be a token for this class, got null")
    sep, cls = (chosen.roles[role] for role in ("sep_token", "cls_token"))
    return postprocessors.BertProcessing((sep, id_of(sep)), (cls, id_of(cls)))


def _roberta_frame(chosen: Chosen, id_of: Callable[[str], int]) -> postprocessors.PostProcessor:
    frame = _cls_and_sep(chosen, id_of)
    trim, prefix = chosen.values["trim_offsets"], chosen.values["add_prefix_space"]
    return postprocessors.RobertaProcessing(frame.sep, frame.cls, trim, prefix)


def _roles(**tokens: str) -> dict[str, str]:
    return {f"{role}_token": token for role, token in tokens.items()}


_CODE_LLAMA = {
    **_roles(prefix=f"{_SPACE}<PRE>", middle=f"{_SPACE}<MID>", suffix=f"{_SPACE}<SUF>"),
    **_roles(eot=f"{_SPACE}<EOT>"),
}
_LLAMA = PublishedClass(
    SENTENCEPIECE,
    (
        "arcee aria chameleon code_llama colpali deepseek_v2 deepseek_v3 deepseek_vl "
        "deepseek_vl_hybrid diffllama ernie4_5 ernie4_5_moe idefics idefics2 idefics3 jamba "
        "janus jetmoe llama llama4 llama4_text llava llava_next llava_next_video "
        "llava_onevision ministral mistral mistral3 mixtral mllama paligemma persimmon phi3 "
        "phimoe video_llava vipllava zamba zamba2"
    ),
    _roles(bos="<s>", eos="</s>", unk="<unk>"),
    {"add_bos_token": True, "add_eos_token": False, "add_prefix_space": True, "legacy": True},
    _llama,
    _bos_and_eos,
)
_T5 = PublishedClass(
    SENTENCEPIECE,
    "longt5 mt5 musicgen musicgen_melody pix2struct switch_transformers t5 umt5",
    _roles(eos="</s>", unk="<unk>", pad="<pad>"),
    {"extra_ids": 100, "add_prefix_space": True, "legacy": True, **_CLEAN_UP},
    _t5,
    _t5_frame,
    fixed=_ADD,
    listed=_t5_listed,
)
_GPT2 = PublishedClass(
    VOCAB_AND_MERGES,
    (
        "blip-2 dbrx emu3 exaone4 flex_olmo gpt2 gpt_bigcode gpt_neo gptj granite granitemoe "
        "granitemoehybrid granitemoeshared instructblip instructblipvideo minimax olmo3 opt "
        "starcoder2"
    ),
    _roles(bos=_END, eos=_END, unk=_END),
    {"add_prefix_space": False, "add_bos_token": False},
    _byte_level,
    _bos_and_eos,
    fixed={"add_eos_token": False},
)
_ROBERTA = PublishedClass(
    VOCAB_AND_MERGES,
    "bridgetower clap data2vec-text ibert mega mra roberta roberta-prelayernorm",
    _roles(bos="<s>", eos="</s>", unk="<unk>", sep="</s>", pad="<pad>", cls="<s>", mask="<mask>"),
    {"add_prefix_space": False, "trim_offsets": True},
    _byte_level,
    _roberta_frame,
    fixed=_ADD,
    strips_left=("mask_token",),
)
_BERT = PublishedClass(
    VOCAB_TXT,
    (
        "align bark bert blip bros chinese_clip ernie git grounding-dino megatron-bert "
        "mm-grounding-dino nezha qdqbert tvp vilt visual_bert"
    ),
    _roles(unk="[UNK]", sep="[SEP]", pad="[PAD]", cls="[CLS]", mask="[MASK]"),
    {"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True, **_CLEAN_UP},
    _bert,
    _cls_and_sep,
    fixed=_ADD,
)

CLASSES: dict[str, PublishedClass] = {
    "LlamaTokenizer": _LLAMA,
    "CodeLlamaTokenizer": replace(
        _LLAMA,
        model_types="",
        settings={"add_bos_token": True, "add_eos_token": False, "fill_token": None, **_CODE_LLAMA},
        fixed={"add_prefix_space": True},
        listed=lambda chosen: [*chosen.lists, *filter(None, map(chosen.values.get, _CODE_LLAMA))],
    ),
    "GemmaTokenizer": PublishedClass(
        SENTENCEPIECE,
        (
            "gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text recurrent_gemma shieldgemma2 "
            "siglip2 t5gemma"
        ),
        _roles(bos="<bos>", eos="<eos>", unk="<unk>", pad="<pad>"),
        {"add_bos_token": True, "add_eos_token": False},
        _gemma,
        _bos_and_eos,
    ),
    "T5Tokenizer": _T5,
    "GPT2Tokenizer": _GPT2,
    "RobertaTokenizer": _ROBERTA,
    "BartTokenizer": replace(_ROBERTA, model_types="bart"),
    "LEDTokenizer": replace(_ROBERTA, model_types="led"),
    "LongformerTokenizer": replace(_ROBERTA, model_types="longformer"),
    "Qwen2Tokenizer": PublishedClass(
        VOCAB_AND_MERGES,
        (
            "colqwen2 internvl qwen2 qwen2_5_omni qwen2_5_vl qwen2_audio qwen2_moe qwen2_vl qwen3 "
            "qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl qwen3_vl_moe"
        ),
        _roles(eos=_END, unk=_END, pad=_END),
        {},
        _qwen2,
        lambda chosen, id_of: None,
        fixed={"add_prefix_space": False, **_ADD},
    ),
    "BertTokenizer": _BERT,
    "DistilBertTokenizer": replace(_BERT, model_types="distilbert"),
    "ElectraTokenizer": replace(_BERT, model_types="electra"),
    "ConvBertTokenizer": replace(_BERT, model_types="convbert"),
    "MobileBertTokenizer": replace(_BERT, model_types="mobilebert"),
    "MPNetTokenizer": replace(
        _BERT,
        model_types="mpnet",
        roles={**_ROBERTA.roles, "unk_token": "[UNK]"},
        fixed={**_ADD, "do_basic_tokenize": True},
        strips_left=("mask_token",),
    ),
}
"""The supported classes by name; for a folder without any, the first one for its files."""

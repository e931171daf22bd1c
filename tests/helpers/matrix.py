"""The axes of the comparison: parts made by `tokenizers`, models that it trained, and texts."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

from made_text import documents
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from bpe_beam.tokenizer.components.patterns import DEEPSEEK_V3_PATTERNS, NAMED_PATTERNS

BEHAVIORS = ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")

TEXTS = [
    *("", " ", "a", "  ", "\n", " a", "a ", "\t a\u3000b\u00a0", "a  b   c    d"),
    *("\n\n \n a\r\n\r\nb", "Hello, world! It's 3.14 o'clock (isn't it?)", "HELLO WORLD'S aBcDeF"),
    *(
        "x=y_z/w-v+u*[t]{s}",
        "naïve él està Straße größer",
        "e\u0301e\u0301 n\u0303 a\u0323\u0307 \u0301",
    ),
    *(
        "é\u0301\u0301x",
        "một nơi là tài năng",
        "привет МИР",
        "العربية كلمة",
        "हिन्दी शब्द",
        "한국어 각",
    ),
    *("你好\uff0c世界。中文abc", "ﬁne ½ ² Ⅷ ㎏ \uff46\uff55\uff4c\uff4c Å K \u017f İstanbul ς Σ"),
    *(
        "😀 👍🏽 👩\u200d👩\u200d👧 🇻🇳",
        "a\u200bb\u200dc\ufeffd\u00ade",
        "\x00a\x01b\x1cc\x7fd\x85e",
    ),
    *("\ufffd\uffff\U0010ffff\ue000", "▁▁a▁ b▁", "_a__b_ _", "Ġa Ċ Ã©", "##a ## b", "<s>"),
    *("</s><s>", "[UNK] [CLS] [SEP]", "<0x41> <0xC3>", "1234567890 12 345", "!!!???...---"),
    *("don't can't we'll I'VE 'S '' ' s", "a" * 150, "ab " * 40, "aaaa" * 20 + " " + "b" * 30),
    *(
        "the of and to in that it's they'll we've",
        "tokenizer tokenizers token tokens",
        "do not 's .",
    ),
]
PIECES = [
    *"aAbé語1 _▁.,'\n\u0301\u3000ß", "  ", "the", "token", "izer", "HOUSE", "世界", "мир", "İ", "ﬁ",
    "<s>", "</s>", "[X]", "[Y]", "xyz", " xyz ", "<mask>", "Éa", "\u00a0", "\x01", "😀", "'s", "12",
]  # fmt: skip


@cache
def texts() -> list[str]:
    """Return the texts above, ordinary ones, and random ones of characters that parts change."""
    rng = random.Random(7)
    mixed = ["".join(rng.choices(PIECES, k=rng.randint(1, 9))) for _ in range(150)]
    return [*TEXTS, *documents(15, seed=3), *mixed]


# ---- models ----


def _trained(model: Any, trainer: Any, pre_tokenizer: Any) -> str:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator([*documents(400, seed=1), *TEXTS], trainer)
    return str(tokenizer.to_str())


def _bpe(model: Any, pre_tokenizer: Any = None, **settings: Any) -> str:
    trainer = trainers.BpeTrainer(vocab_size=900, show_progress=False, **settings)
    return _trained(model, trainer, pre_tokenizer or pre_tokenizers.Whitespace())


def _special(*tokens: str) -> dict[str, Any]:
    return {"special_tokens": list(tokens)}


def _bytes(ignore_merges: bool = False) -> str:
    return _bpe(
        models.BPE(ignore_merges=ignore_merges),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )


def _fallback(fuse_unk: bool) -> str:
    names = [f"<0x{byte:02X}>" for byte in range(256)]
    model = models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=fuse_unk)
    return _bpe(model, pre_tokenizers.Metaspace(), limit_alphabet=60,
                **_special("<unk>", "<s>", "</s>", *names))  # fmt: skip


def _unknown(**settings: Any) -> str:
    return _bpe(models.BPE(unk_token="[UNK]", **settings), limit_alphabet=60, **_special("[UNK]"))


def _wordpiece(prefix: str = "##", longest: int = 100) -> str:
    trainer = trainers.WordPieceTrainer(
        vocab_size=900, show_progress=False, limit_alphabet=80, continuing_subword_prefix=prefix,
        **_special("[UNK]", "[CLS]", "[SEP]"),
    )  # fmt: skip
    model = models.WordPiece(
        unk_token="[UNK]", continuing_subword_prefix=prefix, max_input_chars_per_word=longest
    )
    return _trained(model, trainer, pre_tokenizers.BertPreTokenizer())


def _word_level() -> str:
    trainer = trainers.WordLevelTrainer(vocab_size=300, show_progress=False, **_special("<unk>"))
    return _trained(models.WordLevel(unk_token="<unk>"), trainer, pre_tokenizers.Whitespace())


def _unigram(*, fallback: bool = False) -> str:
    trainer = trainers.UnigramTrainer(
        vocab_size=700, show_progress=False, unk_token="<unk>", **_special("<unk>", "<s>")
    )
    file = json.loads(_trained(models.Unigram(), trainer, pre_tokenizers.Metaspace()))
    if fallback:
        file["model"]["byte_fallback"] = True
        file["model"]["vocab"] += [[f"<0x{byte:02X}>", -20.0] for byte in range(256)]
    return json.dumps(file)


MODELS: dict[str, Callable[[], str]] = {
    "bytes": _bytes,
    "bytes, ignore_merges": lambda: _bytes(ignore_merges=True),
    "unknown": _unknown,
    "unknown, fused": lambda: _unknown(fuse_unk=True),
    "fallback": lambda: _fallback(False),
    "fallback, fused": lambda: _fallback(True),
    "suffix": lambda: _bpe(
        models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"),
        limit_alphabet=60, end_of_word_suffix="</w>", **_special("[UNK]"),
    ),
    "prefix": lambda: _bpe(
        models.BPE(unk_token="[UNK]", continuing_subword_prefix="##"),
        limit_alphabet=60, continuing_subword_prefix="##", **_special("[UNK]"),
    ),
    "unknown, ignore_merges": lambda: _unknown(ignore_merges=True),
    "wordpiece": _wordpiece,
    "wordpiece, short": lambda: _wordpiece(longest=4),
    "wordpiece, other prefix": lambda: _wordpiece("@"),
    "word level": _word_level,
    "unigram": _unigram,
    "unigram, fallback": lambda: _unigram(fallback=True),
}  # fmt: skip
_made = cache(lambda name: MODELS[name]())


def tokenizer(model: str, **parts: Any) -> Tokenizer:
    """Return a new tokenizer with a trained model and these parts only."""
    made = Tokenizer.from_str(_made(model))
    made.pre_tokenizer = None
    for name, part in parts.items():
        if part is not None:
            setattr(made, name, part)
    return made


# ---- parts ----

NORMALIZERS: dict[str, Any] = {
    "none": None,
    **{name: getattr(normalizers, name)() for name in ("NFC", "NFD", "NFKC", "NFKD")},
    "lowercase": normalizers.Lowercase(),
    "strip accents": normalizers.StripAccents(),
    "strip": normalizers.Strip(),
    "strip left": normalizers.Strip(left=True, right=False),
    "strip right": normalizers.Strip(left=False, right=True),
    "prepend": normalizers.Prepend("▁"),
    "replace": normalizers.Replace(" ", "▁"),
    "replace by more": normalizers.Replace("a", "éb"),
    "replace by nothing": normalizers.Replace("e", ""),
    "replace regex": normalizers.Replace(Regex(r"\s+"), " "),
    "replace empty matches": normalizers.Replace(Regex(r"(?<=\S)(?=\s|$)"), "_"),
    **{
        f"bert {flags}": normalizers.BertNormalizer(
            clean_text=flags[0], handle_chinese_chars=flags[1], strip_accents=flags[2],
            lowercase=flags[3],
        )
        for flags in itertools.product((False, True), (False, True), (False, None), (False, True))
    },
    "nfkd, strip accents, lowercase": normalizers.Sequence(
        [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    ),
    "prepend, replace": normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    ),
    "strip, prepend, nfkc": normalizers.Sequence(
        [normalizers.Strip(), normalizers.Prepend(" "), normalizers.NFKC()]
    ),
    "empty sequence": normalizers.Sequence([]),
}  # fmt: skip

SPLITS = {
    "string": "a",
    "spaces": Regex(r"\s+"),
    "letters": Regex(r"\p{L}+"),
    "empty": Regex(r"(?=[A-Z])"),
}
PRE_TOKENIZERS: dict[str, Any] = {
    "none": None,
    **{
        f"byte level {flags}": pre_tokenizers.ByteLevel(*flags)
        for flags in itertools.product((False, True), (True,), (False, True))
    },
    "bert": pre_tokenizers.BertPreTokenizer(),
    "whitespace": pre_tokenizers.Whitespace(),
    "whitespace split": pre_tokenizers.WhitespaceSplit(),
    "delimiter": pre_tokenizers.CharDelimiterSplit("_"),
    **{
        f"metaspace {scheme} {split}": pre_tokenizers.Metaspace("▁", scheme, split)
        for scheme in ("always", "first", "never")
        for split in (False, True)
    },
    "digits": pre_tokenizers.Digits(False),
    "digits, each": pre_tokenizers.Digits(True),
    **{f"punctuation {name}": pre_tokenizers.Punctuation(name) for name in BEHAVIORS},
    **{
        f"split {name} {behavior} {invert}": pre_tokenizers.Split(pattern, behavior, invert)  # type: ignore[arg-type]
        for name, pattern in SPLITS.items()
        for behavior in BEHAVIORS
        for invert in (False, True)
    },
    **{
        f"{name} {flags}": pre_tokenizers.Split(Regex(pattern.expression), *flags)
        for name, pattern in NAMED_PATTERNS.items()
        if name != "llama3"
        for flags in (("isolated", False), ("removed", True))
        if not flags[1] or name in ("gpt2", "cl100k", "o200k")
    },
    "digits, gpt2": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)]
    ),
    "deepseek_v3 in parts": pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in DEEPSEEK_V3_PATTERNS]
    ),
    "scripts": pre_tokenizers.UnicodeScripts(),
    "fixed length": pre_tokenizers.FixedLength(3),
    "scripts, fixed length": pre_tokenizers.Sequence(
        [pre_tokenizers.UnicodeScripts(), pre_tokenizers.FixedLength(2)]
    ),
    "whitespace, digits": pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)]
    ),
    "punctuation, metaspace": pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation(), pre_tokenizers.Metaspace("▁", "first")]
    ),
    "split, byte level with a space": pre_tokenizers.Sequence(
        [pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.ByteLevel(True)]
    ),
}


def to_bytes(part: Any) -> Any:
    """Return a pre-tokenizer for a byte-level model."""
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if part is None:
        return last
    if isinstance(part, pre_tokenizers.ByteLevel):
        return part
    return pre_tokenizers.Sequence([part, last])


LLAMA2_DECODER = decoders.Sequence(
    [
        decoders.Replace("▁", " "),
        decoders.ByteFallback(),
        decoders.Fuse(),
        decoders.Strip(" ", 1, 0),
    ]
)
DECODERS: dict[str, Any] = {
    "none": None,
    "byte level": decoders.ByteLevel(),
    "bpe": decoders.BPEDecoder(),
    "wordpiece": decoders.WordPiece(),
    "wordpiece, no cleanup": decoders.WordPiece("##", False),
    "metaspace": decoders.Metaspace(),
    "metaspace never": decoders.Metaspace("▁", "never"),
    "byte fallback": decoders.ByteFallback(),
    "fuse": decoders.Fuse(),
    "strip": decoders.Strip("▁", 1, 0),
    "replace": decoders.Replace(Regex("[aé]+"), "_"),
    "llama 2": LLAMA2_DECODER,
    "ctc": decoders.CTC(),
    "ctc of letters": decoders.CTC("a", "e", True),
    "ctc of nothing": decoders.CTC("", "", True),
    "ctc, no cleanup": decoders.CTC("▁", "|", False),
}


def template(single: str, **ids: int) -> Any:
    """Return a template whose special tokens are in the order of `single`."""
    names = [name for name in single.split() if not name.startswith("$")]
    return processors.TemplateProcessing(
        single=single, pair="$A $B", special_tokens=[(name, ids.get(name, 0)) for name in names]
    )


POST_PROCESSORS: dict[str, Any] = {
    **{
        f"byte level {flags}": processors.ByteLevel(*flags)
        for flags in itertools.product((False, True), (False, True))
    },
    "bert": processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1)),
    **{
        f"roberta {flags}": processors.RobertaProcessing(("</s>", 2), ("<s>", 1), *flags)
        for flags in itertools.product((False, True), (False, True))
    },
    "template": template("<s> $A </s> <e>"),
    "template, none": template("$A"),
    "byte level, template": processors.Sequence([processors.ByteLevel(), template("<s> $A")]),
    "template, byte level": processors.Sequence(
        [template("<s> $A"), processors.ByteLevel(add_prefix_space=False)]
    ),
}


def added_tokens(**flags: bool) -> list[AddedToken]:
    """Return tokens that overlap, with the same flags."""
    return [AddedToken(content, **flags) for content in ("<s>", "[X]", "xyz", "a", "Éa", "the")]

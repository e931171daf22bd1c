"""`.model` files: the ids and the texts of SentencePiece itself, for models of every option."""

from __future__ import annotations

import io
import itertools
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sentencepiece")

import sentencepiece
from made_text import documents
from sentencepiece_models import (
    BPE,
    BYTES,
    NORMAL,
    SPECIAL,
    UNIGRAM,
    UNUSED,
    USER_DEFINED,
    Piece,
    made_model,
)
from tokenizers import Tokenizer as HuggingFace

from bpe_beam import Tokenizer
from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.components import models
from bpe_beam.tokenizer.components.added_tokens import AddedToken
from bpe_beam.tokenizer.components.normalizers import NormalizerSequence, Prepend, Replace
from bpe_beam.tokenizer.components.patterns import Pattern
from bpe_beam.tokenizer.components.pretokenizers import Metaspace
from bpe_beam.tokenizer.files import sentencepiece_file
from bpe_beam.tokenizer.spec import TokenizerSpec

CHARSMAP = Path(sentencepiece.__file__).parent / "package_data" / "nmt_nfkc.bin"
FOREIGN = ["naïve café straße 東京 京都 日本語 Привет мир ﬁne ① ½ ｶﾞ", "x1y22z333  y\tz e\u0301 é"]
OPTIONS: dict[str, list[Any]] = {
    "model_type": ["bpe", "unigram"],
    "normalization_rule_name": ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"],
    "add_dummy_prefix": [True, False],
    "remove_extra_whitespaces": [True, False],
    "byte_fallback": [True, False],
    "treat_whitespace_as_suffix": [False, True],
    "user_defined_symbols": [[], ["<sep>", "<sep><", "the", "東", "a b"]],
    "control_symbols": [[], ["<c>", "東京 "]],
    "allow_whitespace_only_pieces": [False, True],
    "split_by_whitespace": [True, False],
    "split_by_unicode_script": [True, False],
    "split_by_number": [True, False],
    "split_digits": [False, True],
    "character_coverage": [1.0, 0.98],
    "unk_surface": [" \u2047 ", "?", ""],
    "pad_id": [-1, 3],
    "bos_id": [1, -1],
    "vocab_size": [430, 600],
    "max_sentencepiece_length": [16, 4],
}
PARTS = [
    *("", " ", "  ", "\t", "\n", "\u3000", "\u2581", "\u200b", "\x00", "\ufeff", "the", "a b"),
    *("<sep>", "<sep><", "<s>", "<unk>", "<c>", "<0x41>", "東京 ", "é", "e\u0301", "\u0301"),
    *"ae<zé©가ﬁ½ⅧｱﾞאÅ👩東京日本語①миф1234.,",
]

CHARACTERS = "▁ aeth<sp>東京é1x"
"""Those of pieces that no trainer makes."""


def texts(rng: random.Random, count: int) -> list[str]:
    made = ["".join(rng.choices(PARTS, k=rng.randint(1, 12))) for _ in range(count)]
    # A sum of 32 bits that is long is round, so ties are many.
    long = " ".join(documents(100))
    runs = [" " * 45 + "x", "the" * 99, "▁" * 33, "aaaa" * 30, *FOREIGN]
    made += ["".join(rng.choices(CHARACTERS, k=rng.randint(1, 60))) for _ in range(count)]
    return [*made, *runs, long, "".join(rng.choices(PARTS, k=6000)), *documents(20)]


def trained(**options: Any) -> bytes:
    """Return a model that SentencePiece trains."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*documents(150), *FOREIGN * 4]),
        model_writer=written,
        minloglevel=3,
        num_threads=1,
        hard_vocab_limit=False,
        **options,
    )
    return written.getvalue()


def check(model: bytes, rng: random.Random, count: int = 150) -> Tokenizer:
    """Compare ids and decoded texts; return the tokenizer."""
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
    ours = Tokenizer(sentencepiece_file.read(model, "tokenizer.model"))
    from_json = Tokenizer.from_json(ours.to_json())
    written = sentencepiece_file.write(from_json.spec)
    samples = texts(rng, count)
    expected = theirs.encode(samples)
    again = sentencepiece.SentencePieceProcessor(model_proto=written)
    assert again.encode(samples[:count]) == expected[:count]
    assert [again.id_to_piece(i) for i in range(again.vocab_size())] == [*ours.vocab]
    assert from_json.encode_batch(samples) == expected
    assert pickle.loads(pickle.dumps(ours)) == from_json
    assert len(ours) == theirs.vocab_size()
    for text, ids in zip(samples, expected, strict=True):
        assert ours.encode(text) == ids, ascii(text)
        assert ours.encode_with_offsets(text)[1] == ids, ascii(text)
        # Hugging Face's decoders write the unknown token as it is.
        if ours.file_warning or theirs.unk_id() not in ids:
            assert ours.decode(ids) == theirs.decode(ids), ascii(text)
    if ours.file_warning:
        with pytest.raises(Exception, match="did not match any variant"):
            HuggingFace.from_str(ours.to_json())
        for _ in range(count):
            ids = rng.choices(range(len(ours)), k=rng.randint(0, 8))
            assert ours.decode(ids) == theirs.decode(ids), ids
    else:
        hugging_face = HuggingFace.from_str(ours.to_json())
        hugging_face.encode_special_tokens = True
        for text, ids in zip(samples, expected, strict=True):
            assert hugging_face.encode(text, add_special_tokens=False).ids == ids, ascii(text)
    return ours


def cases(count: int) -> list[dict[str, Any]]:
    """Return sets of options; each value of each option is in one of the first five."""
    rng = random.Random(4)
    columns = {}
    for name, values in OPTIONS.items():
        rounds = [rng.sample(values, len(values)) for _ in range(count)]
        columns[name] = list(itertools.chain(*rounds))
    return [{name: column[number] for name, column in columns.items()} for number in range(count)]


CASES = cases(100)


@pytest.mark.parametrize("number", range(5))
def test_options(number: int) -> None:
    check(trained(**CASES[number]), random.Random(number), 60)


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(len(CASES)))
def test_all_options(number: int) -> None:
    check(trained(**CASES[number]), random.Random(number), 600)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("model_type", [BPE, UNIGRAM])
@pytest.mark.parametrize("path", [None, CHARSMAP], ids=["no replacements", "replacements"])
def test_rules(path: Path | None, model_type: int) -> None:
    """Every combination of the rules of spaces, with pieces that no trainer makes."""
    rng = random.Random(1)
    pieces = made_pieces(rng, byte_fallback=path is None)
    samples = texts(rng, 40)
    for flags in itertools.product([0, 1], repeat=4):
        dummy, remove, escape, suffix = flags
        rules = {3: dummy, 4: remove, 5: escape} | ({2: path.read_bytes()} if path else {})
        trainer = {24: suffix, 35: int(path is None)}
        model = made_model(pieces, model_type, trainer=trainer, normalizer=rules)
        theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
        ours = Tokenizer(sentencepiece_file.read(model, "m.model"))
        for text in samples:
            assert ours.encode(text) == theirs.encode(text), (flags, ascii(text))
            assert ours.decode(ours.encode(text)) == theirs.decode(theirs.encode(text))


def made_pieces(rng: random.Random, *, byte_fallback: bool = False) -> list[Piece]:
    """Return pieces of a few characters, of which many have one score."""
    normal = {*CHARACTERS, *("▁" * size for size in (2, 3, 4, 7))}
    while len(normal) < 300:
        normal.add("".join(rng.choices(CHARACTERS, k=rng.randint(2, 5))))
    chosen = ["the", "<sep>", "a b"]
    found: list[Piece] = [*SPECIAL, *(BYTES if byte_fallback else [])]
    found += [(piece, -rng.randrange(4) / 4, NORMAL) for piece in sorted(normal - {*chosen})]
    return [*found, *((piece, 0, USER_DEFINED) for piece in chosen)]


def test_pieces_that_tie() -> None:
    """Runs of spaces have one score in Llama 2; the leftmost is made first there."""
    for seed in range(5):
        rng = random.Random(seed)
        pieces = [row for row in made_pieces(rng) if row[2] != USER_DEFINED]
        check(made_model(pieces, normalizer={4: 0}), rng, 40)


def test_runs_that_tie() -> None:
    """As in Llama 2: Hugging Face's merges make the leftmost run of spaces first, too."""
    for seed in range(20):
        rng = random.Random(seed)
        sizes = rng.sample(range(2, 17), rng.randint(2, 14))
        tied: list[Piece] = [("▁" * size, -1e9, NORMAL) for size in sorted(sizes)]
        others = [*(("▁" + letter, -number, NORMAL) for number, letter in enumerate("abc", 1))]
        letters = [(letter, -99, NORMAL) for letter in "▁abc"]
        model = made_model([*SPECIAL, *tied, *others, *letters], normalizer={4: 0})
        theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
        ours = Tokenizer(sentencepiece_file.read(model, "m.model"))
        assert ours.file_warning is None
        hugging_face = HuggingFace.from_str(ours.to_json())
        for text in (" " * size + end for size in range(50) for end in ("", "a", "é  b")):
            ids = theirs.encode(text)
            assert ours.encode(text) == ids, (sizes, text)
            assert hugging_face.encode(text, add_special_tokens=False).ids == ids, (sizes, text)


def test_unused_pieces_of_unigram() -> None:
    rng = random.Random(3)
    pieces = [
        (piece, score, UNUSED if kind == NORMAL and number % 3 == 0 else kind)
        for number, (piece, score, kind) in enumerate(made_pieces(rng))
    ]
    check(made_model(pieces, UNIGRAM), rng)


def test_what_hugging_face_can_say_is_said_so() -> None:
    plain = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    for more in ({}, {"byte_fallback": True}, {"add_dummy_prefix": False}):
        ours = check(trained(model_type="bpe", vocab_size=450, **plain, **more), random.Random(2))
        assert ours.file_warning is None
        assert ours.spec.model.json_type == "BPE"


ESCAPE, PREFIX = Replace(Pattern(text=" "), "▁"), Prepend("▁")
SHAPES: list[tuple[Any, Any]] = [
    (PREFIX, Metaspace()),
    (PREFIX, Metaspace(split=False)),
    (NormalizerSequence((PREFIX, ESCAPE)), None),
    (ESCAPE, None),
    (None, Metaspace(prepend_scheme="never")),
]


def made_bpe(rng: random.Random) -> TokenizerSpec:
    """Return BPE with merges in an order that no training gives."""
    letters = "▁" + "abc"[: rng.randint(1, 3)]
    byte_fallback = rng.random() < 0.5
    tokens, merges = [*letters], []
    for _ in range(rng.randint(1, 9)):
        pair = rng.choice(tokens), rng.choice(tokens)
        joined = "".join(pair)
        if (
            pair not in merges
            and len(joined) <= 7
            and ("▁" not in joined[1:] or rng.random() < 0.2)
        ):
            merges.append(pair)
            tokens += [joined] * (joined not in tokens)
    if rng.random() < 0.3:
        rng.shuffle(merges)
    special = ["<unk>", "<s>"]
    texts = special + [text for text, _, _ in BYTES] * byte_fallback + tokens
    normalizer, pre_tokenizer = rng.choice(SHAPES)
    return TokenizerSpec(
        models.BPE(
            {text: token_id for token_id, text in enumerate(texts)},
            merges,
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=byte_fallback,
        ),
        tuple(AddedToken(token_id, text) for token_id, text in enumerate(special)),
        normalizer=normalizer,
        pre_tokenizer=pre_tokenizer,
    )


def test_merges_that_are_written() -> None:
    """What is written has the same ids; what is refused would not always have them."""
    rng = random.Random(11)
    refused = []
    for _ in range(250):
        spec = made_bpe(rng)
        ours = Tokenizer(spec)
        try:
            model = sentencepiece_file.write(spec)
        except UsageError as error:
            refused.append(str(error))
            continue
        theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
        samples = ["".join(rng.choices("▁  aabbcé", k=rng.randint(0, 14))) for _ in range(30)]
        for text, ids in zip(samples, theirs.encode(samples), strict=True):
            assert ours.encode(text) == ids, (ascii(text), spec)
    assert 20 < len(refused) < 150
    assert {reason.split(": ")[2][:9] for reason in refused} == {"by scores", "its pre-t"}

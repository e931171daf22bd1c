"""Texts of which every pattern and special token makes something, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

# What the pattern and the special tokens make something of, and any other character.
FRAGMENTS = (
    *"'''   \n\tsdmtlrveaA19½!.<>|語é\u3000\x1c\0",
    "'ll", "'re", "<|end|>", "<|endoftext|>", "<s>", "<|end", "语 x",
    "\u3000<pad>\n", "the", "----", "    ",
)  # fmt: skip


TEXTS = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.characters(codec="utf-8"))).map("".join)


ALLOWED = st.sampled_from([(), ("<|end|>",), ("<|end|><|end|>", "<s>", "语 x"), "all"])

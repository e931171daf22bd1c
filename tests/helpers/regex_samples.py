"""Expressions as users write them, and as each engine reads them."""

from __future__ import annotations

# By the rules of `regex`: how Hugging Face's engine must be told the same.
FOR_HUGGING_FACE = {
    r"\p{N}{1,3}+": r"(?>\p{N}{1,3})",
    r"a{2}?": r"a{2}",
    r"a{,}": r"a*",
    r"a{,2}": r"a{0,2}",
    r"\pL": r"\p{L}",
    r"\p{Script=Greek}\p{gc=Lu}": r"\p{Greek}\p{Lu}",
    r"[[:digit:]]": r"[0-9]",
    r"[[:alnum:]_]": r"[[:alpha:]0-9_]",
    r"(?i:i)": r"(?i:(?-i:[iIİ]))",
    r"[a||b]": r"[ab]",
    r"[a--b]": r"[a&&[^b]]",
    r"[a|b]": r"[a\|b]",
    r"\m\w": r"(?:(?<![\w\u200c\u200d])(?=[\w\u200c\u200d]))[\w\u200c\u200d]",
    r"(?P<n>a)(?P=n)": r"(?<n>a)\k<n>",
    r"(?<n>a)\g<n>": r"(?<n>a)\k<n>",
    r"(?|a|b)": r"(?:a|b)",
    r"a\Z": r"a\z",
    r"\h": r"[\t\p{Zs}]",
    r"(?s:.)": r"(?:(?m:.))",
    r"(?m:^a)": r"(?:^a)",
    r"\n^": r"\n(?:\A|(?<=\n))",
    r"^a": r"^a",
    r"(?x: a b ) # c": r"(?:ab) # c",
    r"\xe9\U0001f600": "é😀",
}


# By the rules of Hugging Face's engine: how `regex` must be told the same.
FOR_REGEX = {
    r"\p{N}{1,3}+": r"(?:\p{N}{1,3})+",
    r"a{2}?": r"(?:a{2})?",
    r"a{,}": r"a\{,\}",
    r"[[:digit:]]": r"[\d]",
    r"[a||b~~]": r"[a\|\|b\~\~]",
    r"(?i:i)": r"(?i:(?-i:[iI]))",
    r"\w": r"[\w\u00b2\u00b3\u00b9\u00bc-\u00be--[\u200c\u200d]]",
    r"[\w]": r"[[\w--[\u200c\u200d]]]",
    r"\h": r"[0-9a-fA-F]",
    r"\N": r"[^\n]",
    r"a\Z": r"a(?=\n?\Z)",
    r"(?m:.)": r"(?:(?s:.))",
    r"\n^": r"\n(?:^(?!\Z)|\A)",
    r"(?<n>a)\k<n>": r"(?<n>a)(?P=n)",
    r"\x{1f600}": "😀",
}

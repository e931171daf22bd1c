r"""Regular expressions that two engines read alike: `regex` runs them here, Oniguruma elsewhere.

An expression is read by the rules of one engine and spelled for both, from the same fragments. Only
what is known to mean the same is read, by this list: characters, `.`, escapes, classes, properties,
groups of all kinds, lookaround, back references, quantifiers and anchors. Everything else, and what
cannot be spelled alike, is refused with its position. Oniguruma has the rules of its own
syntax, which Hugging Face's `tokenizers` uses; `regex` those of version 1 with MULTILINE.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.regex import classes
from bpe_beam.tokenizer.regex.classes import WITHOUT_CASE, spelled
from bpe_beam.tokenizer.regex.fragment import (
    NOT_SUPPORTED,
    READ_OTHERWISE,
    Dialect,
    Flags,
    Fragment,
    Reader,
)
from bpe_beam.tokenizer.regex.ignored_case import may_join, turkish_variants

_DEEPEST = 50  # groups
_LONGEST = 50_000  # characters, which take a second
# What `regex` may read as a limit of errors.
_FUZZY = re.compile(r"\{[\deids<,+]")
_FLAGS: dict[Dialect, dict[str, str]] = {
    "regex": {"i": "ignore_case", "x": "extended", "s": "dot_all", "m": ""},
    "oniguruma": {"i": "ignore_case", "x": "extended", "m": "dot_all"},
}
_INLINE_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(-[a-zA-Z]*)?\)")
_GROUP_FLAGS = re.compile(r"([a-zA-Z]+)?(-[a-zA-Z]+)?:")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z", re.ASCII)
_SPECIAL = frozenset(r"\.[]{}()*+?^$|")
_BLANKS = " \t\n\r\f\v"
_WORD_ANCHORS = {
    "b": "(?:(?<={word})(?!{word})|(?<!{word})(?={word}))",
    "B": "(?:(?<={word})(?={word})|(?<!{word})(?!{word}))",
    "m": "(?:(?<!{word})(?={word}))",
    "M": "(?:(?<={word})(?!{word}))",
}


def _position(regex: str, oniguruma: str) -> Fragment:
    return Fragment(regex, oniguruma, 0, is_position=True)


def _word_anchor(letter: str, dialect: Dialect) -> Fragment:
    """Return a word boundary of one engine, spelled as lookaround for the other."""
    own, words = f"\\{letter}", classes.word_set(dialect)
    if dialect == "regex":
        return _position(own, _WORD_ANCHORS[letter].format(word=words.bare_oniguruma))
    return _position(_WORD_ANCHORS[letter].format(word=words.bare_regex), own)


_LINE_START: dict[Dialect, Fragment] = {
    # Oniguruma has no line after a line break that ends the text.
    "regex": _position("^", r"(?:\A|(?<=\n))"),
    "oniguruma": _position(r"(?:^(?!\Z)|\A)", "^"),
}
_ANCHORS: dict[Dialect, dict[str, Fragment]] = {
    "regex": {
        "A": _position(r"\A", r"\A"),
        "z": _position(r"\Z", r"\z"),
        "Z": _position(r"\Z", r"\z"),
        **{letter: _word_anchor(letter, "regex") for letter in "bBmM"},
    },
    "oniguruma": {
        "A": _position(r"\A", r"\A"),
        "z": _position(r"\Z", r"\z"),
        "Z": _position(r"(?=\n?\Z)", r"\Z"),
        **{letter: _word_anchor(letter, "oniguruma") for letter in "bB"},
    },
}
_MOST_REPEATS = 100_000  # Oniguruma's own limit
_INTERVAL: dict[Dialect, re.Pattern[str]] = {
    "regex": re.compile(r"\{(?!\})(\d*)(,?)(\d*)\}", re.ASCII),
    "oniguruma": re.compile(r"\{(?!,?\})(\d*)(,?)(\d*)\}", re.ASCII),
}
_SIMPLE: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@lru_cache(maxsize=256)
def translate(expression: str, dialect: Dialect) -> Fragment:
    """Return an expression in spellings for both engines that match the same in every text.

    The engines' versions of Unicode may differ.
    """
    if len(expression) > _LONGEST:
        raise UsageError(
            f"pattern {expression[:200]!r}: must have at most {_LONGEST:,} characters, got "
            f"{len(expression):,}"
        )
    fragment = _Parser(expression, dialect).parse()
    try:
        if dialect == "regex":  # its spelling will be read by the other rules
            _Parser(fragment.oniguruma, "oniguruma").parse()
    except UsageError as error:
        raise UsageError(
            f"pattern {expression[:200]!r}: cannot be written for Hugging Face's engine: {error}"
        ) from None
    return fragment


class _Parser(Reader):
    """One reading of one expression."""

    def __init__(self, expression: str, dialect: Dialect) -> None:
        super().__init__(expression, dialect)
        self.groups: list[bool] = []  # whether each is closed, in the order of their numbers
        self.names: dict[str, bool] = {}
        self.numbered_references = False
        self.has_branch_reset = False
        self.in_lookbehind = ""  # or the opening of the lookbehind
        self.depth = 0

    def parse(self) -> Fragment:
        fragment = self._alternation(Flags())
        if self.next:
            self.refuse(self.at, "closes no group", r"write \)")
        if self.numbered_references and (self.names or self.has_branch_reset):
            self.refuse(
                0, f"has groups without numbers, so a number {READ_OTHERWISE}", "refer to names"
            )
        return fragment

    def _alternation(self, flags: Flags) -> Fragment:
        """Read branches up to a closing parenthesis or the end."""
        self.depth += 1
        if self.depth > _DEEPEST:
            self.refuse(self.at, "is nested too deep", "use fewer groups")
        branches = [self._sequence(flags)]
        while self.accept("|"):
            branches.append(self._sequence(flags))
        self.depth -= 1
        return Fragment(
            "|".join(branch.regex for branch in branches),
            "|".join(branch.oniguruma for branch in branches),
            min(branch.least for branch in branches),
            any(branch.is_position for branch in branches),
            frozenset().union(*(branch.first for branch in branches)),
            frozenset().union(*(branch.last for branch in branches)),
        )

    def _sequence(self, flags: Flags) -> Fragment:
        fragments: list[Fragment] = []
        last: frozenset[str] = frozenset()
        self._skip(flags)
        while self.next and self.next not in "|)":
            start = self.at
            inner = self._inline_flags(flags)
            if inner is not None:
                rest = self._alternation(inner)
                # A later branch belongs to the group of the flag there, and to the expression here.
                if fragments and "|" in self.text[start : self.at]:
                    self.at = self.text.index(")", start) + 1
                    self.refuse(start, READ_OTHERWISE, "put it at the start, or write (?i:...)")
                fragments.append(_enclosed(rest, _opening(flags, inner)))
                break
            fragment = self._quantified(self._atom(flags), flags, start)
            self._check_joint(last, fragment, start)
            last = fragment.last if fragment.least else last | fragment.last
            fragments.append(fragment)
            self._skip(flags)
        if self.in_lookbehind and not fragments:
            self.refuse(self.at, f"is an empty branch: in a lookbehind {NOT_SUPPORTED}")
        return self._joined(fragments)

    def _check_joint(self, before: frozenset[str], fragment: Fragment, start: int) -> None:
        """Refuse letters that are one character in another case."""
        pair = may_join(before, fragment.first)
        if pair:
            self.refuse(
                start,
                f"makes {pair!r} under (?i, which {READ_OTHERWISE}",
                "write the letters in both cases, such as [sS]",
            )

    def _joined(self, fragments: list[Fragment]) -> Fragment:
        """Return the fragments joined; line starts before a character need no translation."""
        least = 0
        spellings: list[tuple[str, str]] = []
        for fragment in reversed(fragments):
            is_line_start = least and fragment in _LINE_START.values()
            spellings.append(("^", "^") if is_line_start else (fragment.regex, fragment.oniguruma))
            least += fragment.least
        return Fragment(
            "".join(regex for regex, _ in reversed(spellings)),
            "".join(oniguruma for _, oniguruma in reversed(spellings)),
            least,
            bool(fragments) and all(fragment.is_position for fragment in fragments),
            _edge(fragments, "first"),
            _edge(fragments[::-1], "last"),
        )

    def _skip(self, flags: Flags) -> None:
        """Go past comments, and with `x` past blanks."""
        while True:
            start = self.at
            if self.accept("(?#"):
                if "\\" in self.until(")", start):
                    self.refuse(start, READ_OTHERWISE, "use no backslash in a comment")
            elif flags.extended and self.next and self.next in _BLANKS:
                self.take()
            elif flags.extended and self.accept("#"):
                line_end = self.text.find("\n", self.at)
                self.at = len(self.text) if line_end < 0 else line_end + 1
            else:
                return

    def _inline_flags(self, flags: Flags) -> Flags | None:
        """Read `(?i)` and its like; None, with nothing read, if something else comes next."""
        match = _INLINE_FLAGS.match(self.text, self.at)
        if match is None or match.end() - match.start() == 3:
            return None
        start, self.at = self.at, match.end()
        return self._changed(flags, match[1], (match[2] or "")[1:], start)

    def _changed(self, flags: Flags, on: str, off: str, start: int) -> Flags:
        known = _FLAGS[self.dialect]
        values = {letter: letter not in off for letter in on + off}
        for letter, is_on in values.items():
            if letter not in known or not (known[letter] or is_on):  # (?m is on in `regex`
                self.refuse(start, READ_OTHERWISE, "use the flags i and x only")
        return flags._replace(**{known[letter]: v for letter, v in values.items() if known[letter]})

    def _quantified(self, atom: Fragment, flags: Flags, start: int) -> Fragment:
        self._skip(flags)
        quantifier = _read_quantifier(self)
        if quantifier is None:
            return atom
        if atom.is_position:
            self.refuse(start, "repeats a position", "repeat what matches characters")
        if quantifier.suffix == "+" or quantifier.low == 0:
            self._refuse_in_lookbehind(start, "write the cases with |")
        if quantifier.high != 1:
            self._check_joint(atom.last, atom, start)
        self._skip(flags)
        after = self.at
        if _read_quantifier(self) is not None:
            self.refuse(after, "repeats a repetition", "put the inner one into (?:...)")
        return _repeated(atom, quantifier, self.dialect)

    def _atom(self, flags: Flags) -> Fragment:
        """Read what a quantifier may follow."""
        start = self.at
        for letter in _WORD_ANCHORS if self.dialect == "oniguruma" else ():
            # What an anchor of `regex` was written as: `regex` runs the anchor again.
            if self.accept(_ANCHORS["regex"][letter].oniguruma):
                return _ANCHORS["regex"][letter]
        character = self.take()
        if character == "(":
            return self._parenthesis(flags, start)
        if character == "[":
            return classes.ClassReader(self, flags).read()
        if character == "\\":
            return self._escape(flags, start)
        if character == ".":
            return Fragment("(?s:.)", "(?m:.)") if flags.dot_all else Fragment(".", ".")
        if character in "^$":
            return _LINE_START[self.dialect] if character == "^" else _position("$", "$")
        if character in "*+?":
            self.refuse(start, "repeats nothing", rf"write \{character} for the character")
        if character == "{":
            self.at = start
            is_fuzzy = self.dialect == "regex" and _FUZZY.match(self.text, start)
            if is_fuzzy or _read_quantifier(self) is not None:
                self.at = (self.text.find("}", start) + 1) or len(self.text)
                self.refuse(start, READ_OTHERWISE, r"write \{ for the character")
            self.at = start + 1
        return self._character(character, flags, start)

    def _character(self, character: str, flags: Flags, start: int) -> Fragment:
        text = spelled(character, _SPECIAL)
        if not flags.ignore_case:
            return Fragment(text, text)
        letters = character.casefold()
        if len(letters) > 1:
            self.refuse(
                start,
                f"is several letters under (?i, which {READ_OTHERWISE}",
                "write it before or after (?i:...)",
            )
        turkish = turkish_variants(character, self.dialect)
        if turkish is not None:
            text = f"(?-i:[{turkish}])"
        return Fragment(text, text, first=frozenset(letters), last=frozenset(letters))

    def _escape(self, flags: Flags, start: int) -> Fragment:
        letter = self.next
        if letter in "123456789" and letter:
            return self._number_reference(flags, start)
        if letter == ("k" if self.dialect == "oniguruma" else "g"):
            self.take()
            if not self.accept("<"):
                self.refuse(start, NOT_SUPPORTED)
            return self._name_reference(self.until(">", start), flags, start)
        if letter == "R":
            self.take()
            self._refuse_in_lookbehind(start, r"write [\r\n]")
            return Fragment(r"\R", r"\R")
        anchor = _ANCHORS[self.dialect].get(letter)
        if anchor is not None:
            self.take()
            if letter in "zZ":
                self._refuse_in_lookbehind(start, "put it outside")
            elif letter in _WORD_ANCHORS and self.in_lookbehind and self.dialect == "regex":
                self.refuse(start, f"{READ_OTHERWISE} in a lookbehind", "put it outside")
            return anchor
        characters = classes.read_set(self)
        if characters is None:
            return self._character(classes.read_character(self), flags, start)
        bare = Fragment(characters.bare_regex, characters.bare_oniguruma)
        if flags.ignore_case and characters.name and characters.name not in WITHOUT_CASE:
            self.refuse(start, f"{READ_OTHERWISE} under (?i", "close (?i:...) before it")
        return _enclosed(bare, "(?-i:") if flags.ignore_case else bare

    def _refuse_in_lookbehind(self, start: int, remedy: str) -> None:
        if self.in_lookbehind:
            self.refuse(start, f"in a lookbehind {NOT_SUPPORTED}", remedy)

    def _number_reference(self, flags: Flags, start: int) -> Fragment:
        number = self.take()
        while self.next.isdecimal() and self.next.isascii():
            number += self.take()
        index = int(number[:9]) - 1
        if len(number) > 1 or index >= len(self.groups) or not self.groups[index]:
            self.refuse(start, NOT_SUPPORTED, "refer to one of nine groups before it")
        self.numbered_references = True
        return self._reference(f"\\{number}", f"\\{number}", flags, start)

    def _name_reference(self, name: str, flags: Flags, start: int) -> Fragment:
        if not self.names.get(name):
            self.refuse(start, NOT_SUPPORTED, "refer to the name of a group before it")
        return self._reference(f"(?P={name})", rf"\k<{name}>", flags, start)

    def _reference(self, regex: str, oniguruma: str, flags: Flags, start: int) -> Fragment:
        if flags.ignore_case or self.in_lookbehind:
            self.refuse(start, f"{READ_OTHERWISE} under (?i and in a lookbehind", "put it outside")
        return Fragment(regex, oniguruma, 0)

    def _parenthesis(self, flags: Flags, start: int) -> Fragment:
        """Read a group, or what else begins with a parenthesis."""
        if not self.accept("?"):
            if self.next == "*":
                self.take()
                self.refuse(start, NOT_SUPPORTED, r"write (?:\* for a group")
            return self._capturing("(", flags, start)
        if self.accept(":"):
            return self._group("(?:", flags, start)
        if self.accept(">"):
            self._refuse_in_lookbehind(start, "write (?:...)")
            return self._group("(?>", flags, start)
        for opening in ("=", "!", "<=", "<!"):
            if self.accept(opening):
                return self._lookaround(f"(?{opening}", flags, start)
        if self.accept("P=") and self.dialect == "regex":
            return self._name_reference(self.until(")", start), flags, start)
        if self.accept("<") or (self.dialect == "regex" and self.accept("P<")):
            name = self.until(">", start)
            if not _NAME.match(name) or name in self.names:
                self.refuse(start, NOT_SUPPORTED, "give each group one name of ASCII letters")
            self.names[name] = False
            fragment = self._capturing(f"(?<{name}>", flags, start)
            self.names[name] = True
            return fragment
        if self.dialect == "regex" and self.accept("|"):
            self.has_branch_reset = True
            return self._group("(?:", flags, start)
        return self._flagged(flags, start)

    def _flagged(self, flags: Flags, start: int) -> Fragment:
        """Read a group with flags of its own; refuse all others."""
        match = _GROUP_FLAGS.match(self.text, self.at)
        if match is None or len(match[0]) < 2:
            self.at += 1
            self.refuse(start, NOT_SUPPORTED, "use (?:...) or another kind of group")
        self.at = match.end()
        inner = self._changed(flags, match[1] or "", (match[2] or "")[1:], start)
        return self._group(_opening(flags, inner), inner, start)

    def _capturing(self, opening: str, flags: Flags, start: int) -> Fragment:
        if self.in_lookbehind:
            self.refuse(start, "captures in a lookbehind", "write (?:...)")
        index = len(self.groups)
        self.groups.append(False)
        group = self._group(opening, flags, start)
        self.groups[index] = True
        return group

    def _lookaround(self, opening: str, flags: Flags, start: int) -> Fragment:
        if opening != "(?<=":
            self._refuse_in_lookbehind(start, "put it outside the lookbehind")
        outer = self.in_lookbehind
        if opening.startswith("(?<"):
            self.in_lookbehind = opening if outer != "(?<!" else outer
        group = self._group(opening, flags, start)
        self.in_lookbehind = outer
        return _position(group.regex, group.oniguruma)

    def _group(self, opening: str, flags: Flags, start: int) -> Fragment:
        """Read up to the parenthesis that closes a group, which is spelled with `opening`."""
        body = self._alternation(flags)
        if not self.accept(")"):
            self.refuse(start, "has no ) at its end", r"write \( for the character")
        return _enclosed(body, opening)


def _edge(fragments: list[Fragment], side: str) -> frozenset[str]:
    """Return the letters with which a match of a sequence may begin; if reversed, end."""
    letters: frozenset[str] = frozenset()
    for fragment in fragments:
        letters |= getattr(fragment, side)
        if fragment.least:
            break
    return letters


def _enclosed(inner: Fragment, opening: str) -> Fragment:
    regex, oniguruma = f"{opening}{inner.regex})", f"{opening}{inner.oniguruma})"
    return replace(inner, regex=regex, oniguruma=oniguruma)


def _opening(outer: Flags, inner: Flags) -> str:
    """Return the opening of a group that changes `outer` to `inner`.

    Other flags are in its fragments.
    """
    if outer.ignore_case == inner.ignore_case:
        return "(?:"
    return "(?i:" if inner.ignore_case else "(?-i:"


class _Quantifier(NamedTuple):
    """A quantifier: how often it repeats, and how it is written."""

    low: int
    high: int | None  # None: any number
    braces: str  # the interval as it is written; empty for * + ?
    suffix: str  # ? or + or nothing


def _read_quantifier(reader: Reader) -> _Quantifier | None:
    """Read a quantifier with its suffix; None, with nothing read, if something else comes next."""
    start = reader.at
    if reader.next in _SIMPLE:
        braces = ""
        low, high = _SIMPLE[reader.take()]
    else:
        match = _INTERVAL[reader.dialect].match(reader.text, start)
        if match is None:
            return None
        reader.at = match.end()
        braces = match[0]
        low = int(match[1][:9] or 0)
        high = low if not match[2] else int(match[3][:9]) if match[3] else None
        if max(low, high or 0) > _MOST_REPEATS:
            reader.refuse(start, f"repeats more than {_MOST_REPEATS:,} times")
        if high is not None and high < low:
            reader.refuse(start, "asks for more than it allows", "swap its numbers")
    return _Quantifier(low, high, braces, next(filter(reader.accept, "?+"), ""))


def _repeated(atom: Fragment, quantifier: _Quantifier, dialect: Dialect) -> Fragment:
    """Return the fragment that a quantifier makes of an atom.

    `{n,m}+` is possessive to `regex` and the repetition of a repetition to Oniguruma; `{n}?` is
    lazy to `regex`, which changes nothing, and makes the whole optional to Oniguruma.
    """
    low, high, suffix = quantifier.low, quantifier.high, quantifier.suffix
    signs = {bounds: sign for sign, bounds in _SIMPLE.items()}
    interval = f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"
    base = signs.get((low, high), interval)
    regex, oniguruma = atom.regex + base, atom.oniguruma + base
    least = low * atom.least
    if suffix == "?" and low == high:
        if dialect == "oniguruma" and "," not in quantifier.braces:
            regex, oniguruma, least = f"(?:{regex})?", f"(?:{oniguruma})?", 0
    elif quantifier.braces and suffix == "+":
        if dialect == "oniguruma":
            regex, oniguruma = f"(?:{regex})+", f"(?:{oniguruma})+"
        else:
            regex, oniguruma = f"{regex}+", f"(?>{oniguruma})"
    else:
        regex, oniguruma = regex + suffix, oniguruma + suffix
    return replace(atom, regex=regex, oniguruma=oniguruma, least=least)

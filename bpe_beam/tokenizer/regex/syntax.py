r"""Regular expressions that two engines read alike: `regex` runs them here, Oniguruma elsewhere.

An expression is read by the rules of one engine and spelled for both, from the same fragments. Only
what is known to mean the same is read, by this list: characters, `.`, escapes, classes, properties,
groups of all kinds, lookaround, back references, quantifiers and anchors. Everything else, and what
cannot be spelled alike, is refused with its position. Oniguruma's rules are those of its own
syntax, which Hugging Face's `tokenizers` uses; those of `regex` are version 1 with MULTILINE.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from bpe_beam.errors import UsageError
from bpe_beam.tokenizer.regex.anchors import (
    LINE_END,
    line_start,
    read_anchor,
    read_spelled_anchor,
    spelled_before,
)
from bpe_beam.tokenizer.regex.classes import ClassReader
from bpe_beam.tokenizer.regex.escapes import (
    keeps_under_ignore_case,
    read_character,
    read_set,
    spelled,
)
from bpe_beam.tokenizer.regex.folding import has_case, is_several, may_join, turkish_variants
from bpe_beam.tokenizer.regex.fragment import (
    NOT_SUPPORTED,
    READ_OTHERWISE,
    Dialect,
    Flags,
    Fragment,
    Reader,
)
from bpe_beam.tokenizer.regex.quantifiers import read_quantifier, repeated

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
_ANY_LINE_BREAK = r"\R"


class Translation(NamedTuple):
    """One expression, spelled for both engines.

    Attributes:
        regex: For `regex`, version 1 with MULTILINE.
        oniguruma: For Hugging Face's engine.
    """

    regex: str
    oniguruma: str


@lru_cache(maxsize=256)
def translate(expression: str, dialect: Dialect) -> Translation:
    """Spell an expression for both engines.

    Args:
        expression: A regular expression.
        dialect: The engine whose rules it follows.

    Returns:
        Spellings that match the same in every text, up to the engines' versions of Unicode.

    Raises:
        UsageError: Names the construct that cannot be spelled alike, its position, and what to
            write instead.
    """
    if len(expression) > _LONGEST:
        raise UsageError(
            f"pattern {expression[:200]!r}: must have at most {_LONGEST:,} characters, got "
            f"{len(expression):,}"
        )
    fragment = _Parser(expression, dialect).parse()
    if dialect == "regex":
        _check_again(expression, fragment.oniguruma)
    return Translation(fragment.regex, fragment.oniguruma)


def _check_again(expression: str, spelled: str) -> None:
    """Refuse an expression whose spelling for Oniguruma would be refused when it is read."""
    try:
        _Parser(spelled, "oniguruma").parse()
    except UsageError as error:
        raise UsageError(
            f"pattern {expression[:200]!r}: cannot be written for Hugging Face's engine: {error}"
        ) from None


class _Parser:
    """One reading of one expression."""

    def __init__(self, expression: str, dialect: Dialect) -> None:
        self.reader = Reader(expression)
        self.dialect: Dialect = dialect
        self.groups: list[bool] = []  # whether each is closed, in the order of their numbers
        self.names: dict[str, bool] = {}
        self.numbered_references = False
        self.has_branch_reset = False
        self.in_lookbehind = ""  # or the opening of the lookbehind
        self.depth = 0

    def parse(self) -> Fragment:
        """Read all of it."""
        fragment = self._alternation(Flags())
        if self.reader.next:
            self.reader.refuse(self.reader.at, "closes no group", r"write \)")
        if self.numbered_references and (self.names or self.has_branch_reset):
            self.reader.refuse(
                0, f"has groups without numbers, so a number {READ_OTHERWISE}", "refer to names"
            )
        return fragment

    def _alternation(self, flags: Flags) -> Fragment:
        """Read branches up to a closing parenthesis or the end."""
        self.depth += 1
        if self.depth > _DEEPEST:
            self.reader.refuse(self.reader.at, "is nested too deep", "use fewer groups")
        branches = [self._sequence(flags)]
        while self.reader.accept("|"):
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
        """Read one branch."""
        reader = self.reader
        fragments: list[Fragment] = []
        last: frozenset[str] = frozenset()
        self._skip(flags)
        while reader.next and reader.next not in "|)":
            start = reader.at
            inner = self._inline_flags(flags)
            if inner is not None:
                rest = self._alternation(inner)
                # A later branch belongs to the group of the flag there, and to the expression here.
                if fragments and "|" in reader.text[start : reader.at]:
                    reader.at = reader.text.index(")", start) + 1
                    reader.refuse(start, READ_OTHERWISE, "put it at the start, or write (?i:...)")
                fragments.append(_group(rest, _opening(flags, inner)))
                break
            fragment = self._quantified(self._atom(flags), flags, start)
            self._check_joint(last, fragment, start)
            last = fragment.last if fragment.least else last | fragment.last
            fragments.append(fragment)
            self._skip(flags)
        if self.in_lookbehind and not fragments:
            reader.refuse(reader.at, f"is an empty branch: in a lookbehind {NOT_SUPPORTED}")
        return self._joined(fragments)

    def _check_joint(self, before: frozenset[str], fragment: Fragment, start: int) -> None:
        """Refuse letters that are one character in another case."""
        pair = may_join(before, fragment.first)
        if pair:
            self.reader.refuse(
                start,
                f"makes {pair!r} under (?i, which {READ_OTHERWISE}",
                "write the letters in both cases, such as [sS]",
            )

    def _joined(self, fragments: list[Fragment]) -> Fragment:
        """Return the fragments joined; line starts before a character need no translation."""
        least = 0
        spelled: list[tuple[str, str]] = []
        for fragment in reversed(fragments):
            spelled.append(spelled_before(fragment, least))
            least += fragment.least
        spelled.reverse()
        return Fragment(
            "".join(regex for regex, _ in spelled),
            "".join(oniguruma for _, oniguruma in spelled),
            least,
            bool(fragments) and all(fragment.is_position for fragment in fragments),
            _edge(fragments, "first"),
            _edge(fragments[::-1], "last"),
        )

    def _skip(self, flags: Flags) -> None:
        """Go past comments, and with `x` past blanks."""
        reader = self.reader
        while True:
            start = reader.at
            if reader.accept("(?#"):
                if "\\" in reader.until(")", start):
                    reader.refuse(start, READ_OTHERWISE, "use no backslash in a comment")
            elif flags.extended and reader.next and reader.next in _BLANKS:
                reader.take()
            elif flags.extended and reader.accept("#"):
                line_end = reader.text.find("\n", reader.at)
                reader.at = len(reader.text) if line_end < 0 else line_end + 1
            else:
                return

    def _inline_flags(self, flags: Flags) -> Flags | None:
        """Read `(?i)` and its like; None, with nothing read, if something else comes next."""
        match = _INLINE_FLAGS.match(self.reader.text, self.reader.at)
        if match is None or match.end() - match.start() == 3:
            return None
        start, self.reader.at = self.reader.at, match.end()
        return self._changed(flags, match[1], (match[2] or "")[1:], start)

    def _changed(self, flags: Flags, on: str, off: str, start: int) -> Flags:
        known = _FLAGS[self.dialect]
        for letter in on + off:
            if letter not in known or (letter == "m" and not known["m"] and letter in off):
                self.reader.refuse(start, READ_OTHERWISE, "use the flags i and x only")
        names_on = {known[letter]: True for letter in on if known[letter]}
        names_off = {known[letter]: False for letter in off if known[letter]}
        return flags._replace(**{**names_on, **names_off})

    def _quantified(self, atom: Fragment, flags: Flags, start: int) -> Fragment:
        """Read the quantifiers after an atom."""
        reader = self.reader
        self._skip(flags)
        quantifier = read_quantifier(reader, self.dialect)
        if quantifier is None:
            return atom
        if atom.is_position:
            reader.refuse(start, "repeats a position", "repeat what matches characters")
        if self.in_lookbehind and (quantifier.suffix == "+" or quantifier.low == 0):
            reader.refuse(start, f"in a lookbehind {NOT_SUPPORTED}", "write the cases with |")
        if quantifier.high != 1:
            self._check_joint(atom.last, atom, start)
        self._skip(flags)
        after = reader.at
        if read_quantifier(reader, self.dialect) is not None:
            reader.refuse(after, "repeats a repetition", "put the inner one into (?:...)")
        return repeated(atom, quantifier, self.dialect)

    def _atom(self, flags: Flags) -> Fragment:
        """Read what a quantifier may follow."""
        reader = self.reader
        start = reader.at
        character = reader.take()
        if character == "(":
            reader.at = start
            anchor = read_spelled_anchor(reader) if self.dialect == "oniguruma" else None
            reader.at += 0 if anchor else 1
            return anchor or self._parenthesis(flags, start)
        if character == "[":
            return ClassReader(reader, self.dialect, flags).read()
        if character == "\\":
            return self._escape(flags, start)
        if character == ".":
            return Fragment("(?s:.)", "(?m:.)") if flags.dot_all else Fragment(".", ".")
        if character == "^":
            return line_start(self.dialect)
        if character == "$":
            return LINE_END
        if character in "*+?":
            reader.refuse(start, "repeats nothing", rf"write \{character} for the character")
        if character == "{":
            reader.at = start
            is_fuzzy = self.dialect == "regex" and _FUZZY.match(reader.text, start)
            if is_fuzzy or read_quantifier(reader, self.dialect) is not None:
                reader.at = (reader.text.find("}", start) + 1) or len(reader.text)
                reader.refuse(start, READ_OTHERWISE, r"write \{ for the character")
            reader.at = start + 1
        return self._character(character, flags, start)

    def _character(self, character: str, flags: Flags, start: int) -> Fragment:
        """Return the fragment of one character."""
        text = spelled(character, _SPECIAL)
        if not flags.ignore_case:
            return Fragment(text, text)
        if is_several(character):
            self.reader.refuse(
                start,
                f"is several letters under (?i, which {READ_OTHERWISE}",
                "write it before or after (?i:...)",
            )
        turkish = turkish_variants(character, self.dialect)
        if turkish is not None:
            text = f"(?-i:[{turkish}])"
        letters = frozenset(character.casefold()) if has_case(character) else frozenset(character)
        return Fragment(text, text, first=letters, last=letters)

    def _escape(self, flags: Flags, start: int) -> Fragment:
        """Read an escape."""
        reader = self.reader
        letter = reader.next
        if letter in "123456789" and letter:
            return self._number_reference(flags, start)
        if letter == "k" and self.dialect == "oniguruma":
            reader.take()
            if reader.accept("<"):
                return self._name_reference(reader.until(">", start), flags, start)
            reader.refuse(start, NOT_SUPPORTED)
        if letter == "g" and self.dialect == "regex":
            reader.take()
            if reader.accept("<"):
                return self._name_reference(reader.until(">", start), flags, start)
            reader.refuse(start, NOT_SUPPORTED)
        if letter == "R":
            reader.take()
            if self.in_lookbehind:
                reader.refuse(start, f"in a lookbehind {NOT_SUPPORTED}", r"write [\r\n]")
            return Fragment(_ANY_LINE_BREAK, _ANY_LINE_BREAK)
        anchor = read_anchor(reader, self.dialect, in_lookbehind=bool(self.in_lookbehind))
        if anchor is not None:
            return anchor
        found = read_set(reader, self.dialect)
        if found is None:
            return self._character(read_character(reader, self.dialect), flags, start)
        if flags.ignore_case and not keeps_under_ignore_case(found):
            reader.refuse(start, f"{READ_OTHERWISE} under (?i", "close (?i:...) before it")
        if flags.ignore_case:
            return Fragment(f"(?-i:{found.bare_regex})", f"(?-i:{found.bare_oniguruma})")
        return Fragment(found.bare_regex, found.bare_oniguruma)

    def _number_reference(self, flags: Flags, start: int) -> Fragment:
        number = self.reader.take()
        while self.reader.next.isdecimal() and self.reader.next.isascii():
            number += self.reader.take()
        index = int(number[:9]) - 1
        if len(number) > 1 or index >= len(self.groups) or not self.groups[index]:
            self.reader.refuse(start, NOT_SUPPORTED, "refer to one of nine groups before it")
        self.numbered_references = True
        return self._reference(f"\\{number}", f"\\{number}", flags, start)

    def _name_reference(self, name: str, flags: Flags, start: int) -> Fragment:
        if not self.names.get(name):
            self.reader.refuse(start, NOT_SUPPORTED, "refer to the name of a group before it")
        return self._reference(f"(?P={name})", rf"\k<{name}>", flags, start)

    def _reference(self, regex: str, oniguruma: str, flags: Flags, start: int) -> Fragment:
        if flags.ignore_case or self.in_lookbehind:
            self.reader.refuse(
                start, f"{READ_OTHERWISE} under (?i and in a lookbehind", "put it outside"
            )
        return Fragment(regex, oniguruma, 0)

    def _parenthesis(self, flags: Flags, start: int) -> Fragment:
        """Read a group, or what else begins with a parenthesis."""
        reader = self.reader
        if not reader.accept("?"):
            if reader.next == "*":
                reader.take()
                reader.refuse(start, NOT_SUPPORTED, r"write (?:\* for a group")
            return self._capturing("(", flags, start)
        if reader.accept(":"):
            return _group(self._body(flags, start), "(?:")
        if reader.accept(">"):
            if self.in_lookbehind:
                reader.refuse(start, f"in a lookbehind {NOT_SUPPORTED}", "write (?:...)")
            return _group(self._body(flags, start), "(?>")
        for opening in ("=", "!", "<=", "<!"):
            if reader.accept(opening):
                return self._lookaround(f"(?{opening}", flags, start)
        if reader.accept("P=") and self.dialect == "regex":
            return self._name_reference(reader.until(")", start), flags, start)
        if reader.accept("<") or (self.dialect == "regex" and reader.accept("P<")):
            name = reader.until(">", start)
            if not _NAME.match(name) or name in self.names:
                reader.refuse(start, NOT_SUPPORTED, "give each group one name of ASCII letters")
            self.names[name] = False
            fragment = self._capturing(f"(?<{name}>", flags, start)
            self.names[name] = True
            return fragment
        if self.dialect == "regex" and reader.accept("|"):
            self.has_branch_reset = True
            return _group(self._body(flags, start), "(?:")
        return self._flagged(flags, start)

    def _flagged(self, flags: Flags, start: int) -> Fragment:
        """Read a group with flags of its own; refuse all others."""
        reader = self.reader
        match = _GROUP_FLAGS.match(reader.text, reader.at)
        if match is None or len(match[0]) < 2:
            reader.at += 1
            reader.refuse(start, NOT_SUPPORTED, "use (?:...) or another kind of group")
        reader.at = match.end()
        inner = self._changed(flags, match[1] or "", (match[2] or "")[1:], start)
        return _group(self._body(inner, start), _opening(flags, inner))

    def _capturing(self, opening: str, flags: Flags, start: int) -> Fragment:
        if self.in_lookbehind:
            self.reader.refuse(start, "captures in a lookbehind", "write (?:...)")
        index = len(self.groups)
        self.groups.append(False)
        body = self._body(flags, start)
        self.groups[index] = True
        return _group(body, opening)

    def _lookaround(self, opening: str, flags: Flags, start: int) -> Fragment:
        if self.in_lookbehind and opening != "(?<=":
            self.reader.refuse(
                start, f"in a lookbehind {NOT_SUPPORTED}", "put it outside the lookbehind"
            )
        outer = self.in_lookbehind
        if opening.startswith("(?<"):
            self.in_lookbehind = opening if outer != "(?<!" else outer
        body = self._body(flags, start)
        self.in_lookbehind = outer
        found = _group(body, opening)
        return Fragment(found.regex, found.oniguruma, 0, True)

    def _body(self, flags: Flags, start: int) -> Fragment:
        """Read up to the parenthesis that closes a group."""
        body = self._alternation(flags)
        if not self.reader.accept(")"):
            self.reader.refuse(start, "has no ) at its end", r"write \( for the character")
        return body


def _edge(fragments: list[Fragment], side: str) -> frozenset[str]:
    """Return the letters with which a match of a sequence may begin; if reversed, end."""
    letters: frozenset[str] = frozenset()
    for fragment in fragments:
        letters |= getattr(fragment, side)
        if fragment.least:
            break
    return letters


def _group(fragment: Fragment, opening: str) -> Fragment:
    return replace(
        fragment, regex=f"{opening}{fragment.regex})", oniguruma=f"{opening}{fragment.oniguruma})"
    )


def _opening(outer: Flags, inner: Flags) -> str:
    """Return the opening of a group that changes `outer` to `inner`.

    Other flags are in its fragments.
    """
    if outer.ignore_case == inner.ignore_case:
        return "(?:"
    return "(?i:" if inner.ignore_case else "(?-i:"

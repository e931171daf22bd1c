r"""Classes of characters, `[...]`, with ranges, nested classes, POSIX names and set operations.

`regex` knows `&&`, `||`, `--` and `~~`, Oniguruma only the first; POSIX names differ in digits,
punctuation and word characters.
"""

from __future__ import annotations

import re

from msgspec import Struct

from bpe_beam.tokenizer.regex.escapes import (
    NOT_WORD,
    WORD_ITEMS,
    CharacterSet,
    read_character,
    read_set,
    spelled,
)
from bpe_beam.tokenizer.regex.folding import letters_of_range, variants
from bpe_beam.tokenizer.regex.fragment import (
    NOT_SUPPORTED,
    READ_OTHERWISE,
    Dialect,
    Flags,
    Fragment,
    Reader,
)
from bpe_beam.tokenizer.regex.properties import WITHOUT_CASE

_OPERATORS: dict[Dialect, tuple[str, ...]] = {
    "regex": ("&&", "||", "--", "~~"),
    "oniguruma": ("&&",),
}
_POSIX = re.compile(r"\[:(\^?)([a-z]+):\]")
_SAME_POSIX = ("alpha", "ascii", "blank", "cntrl", "graph", "lower", "print", "space", "upper")
_JOINERS = r"\u200c\u200d"
# The spellings for `regex` and for Oniguruma, in brackets.
_POSIX_SETS: dict[Dialect, dict[str, tuple[str, str]]] = {
    "regex": {
        "digit": ("0-9", "0-9"),
        "alnum": ("[:alpha:]0-9", "[:alpha:]0-9"),
        "xdigit": ("0-9a-fA-F", "0-9a-fA-F"),
        "word": (r"\w", rf"\w{_JOINERS}"),
    },
    "oniguruma": {
        "digit": (r"\d", r"\d"),
        "alnum": (r"[:alpha:]\d", r"[:alpha:]\d"),
        "xdigit": ("0-9a-fA-F", "0-9a-fA-F"),
        "word": (rf"[\w--[{_JOINERS}]]", r"\w"),
        "punct": (r"\p{P}\p{S}", r"\p{P}\p{S}"),
    },
}
_SPECIAL = frozenset("[]\\^-&~|#")
_IN_PART = "write the letters in both cases, or close (?i:...) before the class"


class _Item(Struct, frozen=True):
    """An item of a class, as both engines spell it."""

    regex: str
    oniguruma: str
    letters: str = ""  # that it contains under (?i:...), folded
    opposites: tuple[str, ...] = ()  # as `regex` spells sets of all other characters, or some
    is_negated: bool = False
    folds_with_marks: bool = False  # whether (?i:...) adds marks, as it does to all letters


class ClassReader:
    """Reads one class, and those in it."""

    def __init__(self, reader: Reader, flags: Flags) -> None:
        """Begin after the opening bracket; `read` ends after the closing one."""
        self.reader = reader
        self.dialect = reader.dialect
        self.flags = flags
        self.items: list[_Item] = []
        self.is_combined = False  # of nested classes, or by set operations
        self.spells_out = False  # whether letters are written in all their cases

    def read(self) -> Fragment:
        """Read the class."""
        start = self.reader.at - 1
        regex, oniguruma = self._read_set(start, depth=0)
        is_cased = any(item.letters for item in self.items)
        if any("i" in item.letters for item in self.items) or (is_cased and self.is_combined):
            self.items, self.spells_out, self.reader.at = [], True, start + 1
            regex, oniguruma = self._read_set(start, depth=0)
            regex, oniguruma = f"(?-i:{regex})", f"(?-i:{oniguruma})"
        if any(item.folds_with_marks for item in self.items) and (
            len(self.items) < 2 or self.spells_out or self.is_combined
        ):
            self.reader.refuse(start, f"{READ_OTHERWISE} under (?i", _IN_PART)
        # Oniguruma finds ss for the ß in a class; named sets have no letters of the text.
        is_wide = not regex.startswith(("[^", "(?-i:[^")) and any(
            item.regex.startswith(("\\w", "\\W", "\\S", "\\D", "\\P", "\\p", "["))
            for item in self.items
        )
        if self.flags.ignore_case and is_wide:
            self.reader.refuse(start, f"{READ_OTHERWISE} under (?i", _IN_PART)
        alone = frozenset(self.items[0].letters if len(self.items) == 1 else ())
        return Fragment(regex, oniguruma, first=alone, last=alone)

    def _read_set(self, start: int, depth: int) -> tuple[str, str]:
        """Read up to the closing bracket; return both spellings, with brackets."""
        reader = self.reader
        if depth > 1:
            reader.refuse(start, "is nested too deep", "use fewer brackets")
        self.is_combined |= depth > 0
        negation = "^" if reader.accept("^") else ""
        if reader.next == "]":
            reader.take()
            reader.refuse(start, "begins with its closing bracket", r"write \] for the character")
        operands = [self._read_operand(start, depth)]
        operators: list[str] = []
        while reader.next != "]":
            operators.append(self._operator())
            self.is_combined = True
            reader.at += 2
            operands.append(self._read_operand(start, depth))
        reader.take()
        self._check(start, bool(negation), operands)
        if len(set(operators)) > 1:
            reader.refuse(start, "mixes set operations", "put one of them into brackets")
        operator = operators[0] if operators else ""
        if operator == "~~":
            reader.refuse(start, READ_OTHERWISE, "write the characters that are in one set only")
        joined = "" if operator == "||" else operator
        regex = joined.join(_spelled(items, "regex") for items in operands)
        texts = [_spelled(items, "oniguruma") for items in operands]
        if operator == "--":
            oniguruma = texts[0] + "".join(f"&&[^{other}]" for other in texts[1:])
        else:
            oniguruma = joined.join(texts)
        return f"[{negation}{regex}]", f"[{negation}{oniguruma}]"

    def _check(self, start: int, is_negated: bool, operands: list[list[_Item]]) -> None:
        """Refuse the classes in which one of the engines has errors."""
        reader = self.reader
        self.items += [item for items in operands for item in items]
        texts = {item.regex for item in self.items}
        has_opposites = any(not texts.isdisjoint(item.opposites) for item in self.items)
        if has_opposites and (is_negated or self.is_combined):
            reader.refuse(start, "has a set and its opposite", "use | or a lookahead, (?!...)")
        negated = [items for items in operands if any(item.is_negated for item in items)]
        if negated and (is_negated or any(len(items) > 1 for items in negated)):
            reader.refuse(start, "has a negated class in it", "use | or a lookahead, (?!...)")

    def _operator(self) -> str:
        """Return the set operation that comes next; empty if none does."""
        two = self.reader.text[self.reader.at : self.reader.at + 2]
        return two if two in _OPERATORS[self.dialect] else ""

    def _read_operand(self, start: int, depth: int) -> list[_Item]:
        """Read items up to a set operation or the closing bracket."""
        reader = self.reader
        begins = reader.at
        items: list[_Item] = []
        while reader.next != "]" and not self._operator():
            if not reader.next:
                reader.refuse(start, "has no ] at its end")
            items.append(self._read_item(depth, first=reader.at == begins))
        if not items:
            reader.at += 2
            reader.refuse(start, READ_OTHERWISE, "put items on both sides of the operation")
        return items

    def _read_item(self, depth: int, *, first: bool) -> _Item:
        reader = self.reader
        start = reader.at
        if reader.next == "[":
            posix = _POSIX.match(reader.text, start)
            if posix:
                return self._posix(posix)
            if self.dialect == "oniguruma" and reader.accept(NOT_WORD):
                return _Item(r"\W", NOT_WORD, opposites=(r"\w",))
            reader.take()
            regex, oniguruma = self._read_set(start, depth + 1)
            return _Item(regex, oniguruma, is_negated=regex.startswith("[^"))
        if self.dialect == "oniguruma" and reader.accept(WORD_ITEMS):
            return _Item(r"\w", WORD_ITEMS, opposites=(r"\W",))
        if reader.next == "\\":
            reader.take()
            characters = read_set(reader)
            if characters is not None:
                return self._set_item(characters, start)
            reader.at = start
        low = self._read_character(first=first)
        after = reader.text[reader.at + 1 : reader.at + 2]
        if reader.next != "-" or after in ("]", "") or self._operator():
            return self._range(low, low, start)
        reader.take()
        if reader.next in ("[", "-"):
            reader.refuse(start, READ_OTHERWISE, r"write \- for a hyphen")
        high = self._read_character(first=False)
        if high < low:
            reader.refuse(start, "is an empty range", r"write \- for a hyphen")
        return self._range(low, high, start)

    def _read_character(self, *, first: bool) -> str:
        reader = self.reader
        start = reader.at
        character = reader.take()
        if character == "\\":
            return read_character(reader)
        if character == "-" and not first and reader.next != "]":
            reader.refuse(start, READ_OTHERWISE, r"write \- for a hyphen")
        return character

    def _posix(self, match: re.Match[str]) -> _Item:
        reader = self.reader
        start, reader.at = reader.at, match.end()
        name = match[2]
        same = f"[:{name}:]"
        sets = (same, same) if name in _SAME_POSIX else _POSIX_SETS[self.dialect].get(name)
        if sets is None:
            reader.refuse(start, NOT_SUPPORTED, r"use categories, such as \p{P}\p{S}")
        if self.flags.ignore_case and name in ("upper", "lower", "alpha", "alnum"):
            reader.refuse(start, f"{READ_OTHERWISE} under (?i", _IN_PART)
        negated = (f"[:^{name}:]",) * 2 if name in _SAME_POSIX else ()
        regex, oniguruma = negated or (f"[^{sets[0]}]", f"[^{sets[1]}]")
        if match[1]:
            return _Item(regex, oniguruma, opposites=(sets[0],), is_negated=not negated)
        others = ("[:^alpha:]", r"\D", "[^0-9]") if name in ("alnum", "digit") else ()
        return _Item(*sets, opposites=(regex, *others))

    def _set_item(self, characters: CharacterSet, start: int) -> _Item:
        is_letters = characters.name in ("l", "letter")
        has_marks = characters.name not in WITHOUT_CASE or characters.name.startswith("m")
        if self.flags.ignore_case and characters.name and not is_letters and has_marks:
            self.reader.refuse(start, f"{READ_OTHERWISE} under (?i", _IN_PART)
        opposites: tuple[str, ...] = ()
        if characters.name:
            opposites = (("\\P" if characters.regex[1] == "p" else "\\p") + characters.regex[2:],)
        elif len(characters.regex) == 2:
            opposites = (characters.regex.swapcase(),)
        folds = self.flags.ignore_case and is_letters
        return _Item(
            characters.regex, characters.oniguruma, opposites=opposites, folds_with_marks=folds
        )

    def _range(self, low: str, high: str, start: int) -> _Item:
        """Return the item of all characters from `low` to `high`."""
        text = "-".join(spelled(end, _SPECIAL) for end in dict.fromkeys((low, high)))
        if not self.flags.ignore_case:
            return _Item(text, text)
        letters = letters_of_range(low, high)
        if letters is None or not letters.isascii():
            self.reader.refuse(start, f"{READ_OTHERWISE} under (?i", _IN_PART)
        if not letters:
            return _Item(text, text)
        if self.spells_out:
            cases = variants(letters, self.dialect)
            text = "".join(spelled(letter, _SPECIAL) for letter in cases)
        return _Item(text, text, letters=letters.lower())


def _spelled(items: list[_Item], dialect: Dialect) -> str:
    return "".join(getattr(item, dialect) for item in items)

r"""Classes of characters, `[...]`, with ranges, nested classes, POSIX names and set operations.

`regex` knows `&&`, `||`, `--` and `~~`, Oniguruma only the first; POSIX names differ in digits,
punctuation and word characters.
"""

from __future__ import annotations

import re

from msgspec import Struct

from bpe_beam.tokenizer.regex import escapes, fragment
from bpe_beam.tokenizer.regex.escapes import NOT_WORD, WORD_ITEMS, CharacterSet, spelled
from bpe_beam.tokenizer.regex.fragment import NOT_SUPPORTED, READ_OTHERWISE, Dialect, Reader

_OPERATORS: dict[Dialect, tuple[str, ...]] = {
    "regex": ("&&", "||", "--", "~~"),
    "oniguruma": ("&&",),
}
_POSIX = re.compile(r"\[:(\^?)([a-z]+):\]")
_SAME_POSIX = ("alpha", "ascii", "blank", "cntrl", "graph", "lower", "print", "space", "upper")
# What the other names mean to an engine, in spellings that both read alike; `word` is `\w`.
_POSIX_SETS: dict[Dialect, dict[str, str]] = {
    "regex": {"digit": "0-9", "alnum": "[:alpha:]0-9", "xdigit": "0-9a-fA-F"},
    "oniguruma": {
        **{"digit": r"\d", "alnum": r"[:alpha:]\d", "xdigit": "0-9a-fA-F"},
        "punct": r"\p{P}\p{S}",
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

    def __init__(self, reader: Reader, flags: fragment.Flags) -> None:
        """Begin after the opening bracket; `read` ends after the closing one."""
        self.reader = reader
        self.dialect = reader.dialect
        self.flags = flags
        self.items: list[_Item] = []
        self.is_combined = False  # of nested classes, or by set operations
        self.spells_out = False  # whether letters are written in all their cases

    def read(self) -> fragment.Fragment:
        """Read the class."""
        start = self.reader.at - 1
        regex, oniguruma = self._read_set(start, depth=0)
        letters = "".join(item.letters for item in self.items)
        if "i" in letters or (letters and self.is_combined):
            self.items, self.spells_out, self.reader.at = [], True, start + 1
            regex, oniguruma = self._read_set(start, depth=0)
            regex, oniguruma = f"(?-i:{regex})", f"(?-i:{oniguruma})"
        folds_with_marks = any(item.folds_with_marks for item in self.items)
        is_alone = len(self.items) < 2 or self.spells_out or self.is_combined
        # Oniguruma finds ss for the ß in a class; named sets have no letters of the text.
        is_wide = not regex.startswith(("[^", "(?-i:[^")) and any(
            item.regex.startswith(("\\w", "\\W", "\\S", "\\D", "\\P", "\\p", "["))
            for item in self.items
        )
        if (folds_with_marks and is_alone) or (self.flags.ignore_case and is_wide):
            self.reader.refuse(start, f"{READ_OTHERWISE} under (?i", _IN_PART)
        alone = frozenset(self.items[0].letters if len(self.items) == 1 else ())
        return fragment.Fragment(regex, oniguruma, first=alone, last=alone)

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
            reader.at += 2
            operands.append(self._read_operand(start, depth))
        reader.take()
        self.is_combined |= bool(operators)
        self._check(start, bool(negation), operands)
        if len(set(operators)) > 1:
            reader.refuse(start, "mixes set operations", "put one of them into brackets")
        operator = operators[0] if operators else ""
        if operator == "~~":
            reader.refuse(start, READ_OTHERWISE, "write the characters that are in one set only")
        joined = "" if operator == "||" else operator
        regex = joined.join("".join(item.regex for item in items) for items in operands)
        texts = ["".join(item.oniguruma for item in items) for items in operands]
        others = "".join(f"&&[^{other}]" for other in texts[1:])
        oniguruma = texts[0] + others if operator == "--" else joined.join(texts)
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
            characters = escapes.read_set(reader)
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
            return escapes.read_character(reader)
        if character == "-" and not first and reader.next != "]":
            reader.refuse(start, READ_OTHERWISE, r"write \- for a hyphen")
        return character

    def _posix(self, match: re.Match[str]) -> _Item:
        reader = self.reader
        start, reader.at = reader.at, match.end()
        name = match[2]
        is_same = name in _SAME_POSIX
        word = escapes.word_set(self.dialect)
        one = f"[:{name}:]" if is_same else _POSIX_SETS[self.dialect].get(name, "")
        sets = (word.regex, word.oniguruma) if name == "word" else (one, one)
        if not sets[0]:
            reader.refuse(start, NOT_SUPPORTED, r"use categories, such as \p{P}\p{S}")
        if self.flags.ignore_case and name in ("upper", "lower", "alpha", "alnum"):
            reader.refuse(start, f"{READ_OTHERWISE} under (?i", _IN_PART)
        regex, oniguruma = (f"[:^{name}:]" if is_same else f"[^{spelling}]" for spelling in sets)
        if match[1]:
            return _Item(regex, oniguruma, opposites=(sets[0],), is_negated=not is_same)
        others = ("[:^alpha:]", r"\D", "[^0-9]") if name in ("alnum", "digit") else ()
        return _Item(*sets, opposites=(regex, *others))

    def _set_item(self, characters: CharacterSet, start: int) -> _Item:
        is_letters = characters.name in ("l", "letter")
        has_marks = characters.name not in escapes.WITHOUT_CASE or characters.name.startswith("m")
        if self.flags.ignore_case and characters.name and not is_letters and has_marks:
            self.reader.refuse(start, f"{READ_OTHERWISE} under (?i", _IN_PART)
        regex = characters.regex
        opposites: tuple[str, ...] = ()
        if characters.name or len(regex) == 2:  # of \p{L}, \P{L}; of \d, \D
            opposites = (regex[:2].swapcase() + regex[2:],)
        folds = self.flags.ignore_case and is_letters
        return _Item(regex, characters.oniguruma, opposites=opposites, folds_with_marks=folds)

    def _range(self, low: str, high: str, start: int) -> _Item:
        """Return the item of all characters from `low` to `high`."""
        text = "-".join(spelled(end, _SPECIAL) for end in dict.fromkeys((low, high)))
        if not self.flags.ignore_case:
            return _Item(text, text)
        letters = fragment.letters_of_range(low, high)
        if letters is None or not letters.isascii():
            self.reader.refuse(start, f"{READ_OTHERWISE} under (?i", _IN_PART)
        if not letters:
            return _Item(text, text)
        if self.spells_out:
            cases = fragment.variants(letters, self.dialect)
            text = "".join(spelled(letter, _SPECIAL) for letter in cases)
        return _Item(text, text, letters=letters.lower())

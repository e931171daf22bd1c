r"""Sets of characters: escapes such as `\d` and `\p{L}`, and classes, `[...]`.

The names in `\p{NAME}` are those that mean the same characters to both engines. Scripts that
Unicode added after version 15 are left out: older releases of Hugging Face's engine cannot load a
file that names them. Of set operations `regex` knows `&&`, `||`, `--` and `~~`, Oniguruma only the
first; POSIX names differ in digits, punctuation and word characters.
"""

from __future__ import annotations

import re

from msgspec import Struct

from bpe_beam.tokenizer.regex import fragment, ignored_case
from bpe_beam.tokenizer.regex.fragment import NOT_SUPPORTED, READ_OTHERWISE, Dialect, Reader


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CATEGORIES = _names(
    """
    c casedletter cc cf closepunctuation cn cntrl co combiningmark connectorpunctuation control cs
    currencysymbol dashpunctuation decimalnumber digit enclosingmark finalpunctuation format
    initialpunctuation l lc letter letternumber lineseparator ll lm lo lowercaseletter lt lu m
    mark mathsymbol mc me mn modifierletter modifiersymbol n nd nl no nonspacingmark number
    openpunctuation other otherletter othernumber otherpunctuation othersymbol p
    paragraphseparator pc pd pe pf pi po privateuse ps punct punctuation s sc separator sk sm so
    spaceseparator spacingmark surrogate symbol titlecaseletter unassigned uppercaseletter z zl zp
    zs
    """
)
"""General categories, short and long names."""

_SCRIPTS = _names(
    """
    adlam adlm aghb ahom anatolianhieroglyphs arab arabic armenian armi armn avestan avst bali
    balinese bamu bamum bass bassavah batak batk beng bengali bhaiksuki bhks bopo bopomofo brah
    brahmi brai braille bugi buginese buhd buhid cakm canadianaboriginal cans cari carian
    caucasianalbanian chakma cham cher cherokee chorasmian chrs common copt coptic cpmn cprt
    cuneiform cypriot cyprominoan cyrillic cyrl deseret deva devanagari diak divesakuru dogr dogra
    dsrt dupl duployan egyp egyptianhieroglyphs elba elbasan elym elymaic ethi ethiopic geor
    georgian glag glagolitic gong gonm goth gothic gran grantha greek grek gujarati gujr
    gunjalagondi gurmukhi guru han hang hangul hani hanifirohingya hano hanunoo hatr hatran hebr
    hebrew hira hiragana hluw hmng hmnp hung imperialaramaic inherited inscriptionalpahlavi
    inscriptionalparthian ital java javanese kaithi kali kana kannada katakana kawi kayahli khar
    kharoshthi khitansmallscript khmer khmr khoj khojki khudawadi kits knda kthi lana lao laoo
    latin latn lepc lepcha limb limbu lina linb lineara linearb lisu lyci lycian lydi lydian
    mahajani mahj maka makasar malayalam mand mandaic mani manichaean marc marchen masaramgondi
    medefaidrin medf meeteimayek mend mendekikakui merc mero meroiticcursive meroitichieroglyphs
    miao mlym modi mong mongolian mro mroo mtei mult multani myanmar mymr nabataean nagm
    nagmundari nand nandinagari narb nbat newa newtailue nko nkoo nshu nushu nyiakengpuachuehmong
    ogam ogham olchiki olck oldhungarian olditalic oldnortharabian oldpermic oldpersian oldsogdian
    oldsoutharabian oldturkic olduyghur oriya orkh orya osage osge osma osmanya ougr pahawhhmong
    palm palmyrene pauc paucinhau perm phag phagspa phli phlp phnx phoenician plrd prti
    psalterpahlavi qaac qaai rejang rjng rohg runic runr samaritan samr sarb saur saurashtra sgnw
    sharada shavian shaw shrd sidd siddham signwriting sind sinh sinhala sogd sogdian sogo sora
    sorasompeng soyo soyombo sund sundanese sylo sylotinagri syrc syriac tagalog tagb tagbanwa
    taile taitham taiviet takr takri tale talu tamil taml tang tangsa tangut tavt telu telugu tfng
    tglg thaa thaana thai tibetan tibt tifinagh tirh tirhuta tnsa toto ugar ugaritic vai vaii vith
    vithkuqi wancho wara warangciti wcho xpeo xsux yezi yezidi yi yiii zanabazarsquare zanb zinh
    zyyy
    """
)
"""Scripts, names of four letters and long names."""

_BINARY = _names(
    """
    ahex alnum alpha alphabetic any ascii asciihexdigit assigned blank cased dash
    defaultignorablecodepoint di emoji emojicomponent emojimodifier emojimodifierbase
    emojipresentation extender graph hex hexdigit idcontinue ideo ideographic ids idstart lower
    lowercase math print quotationmark regionalindicator ri space terminalpunctuation uideo
    unifiedideograph upper uppercase variationselector whitespace wspace xidc xidcontinue xids
    xidstart
    """
)
"""Properties that a character has or has not."""

WITHOUT_CASE = _names(
    """
    l letter m mark mn mc me nonspacingmark spacingmark enclosingmark combiningmark lo otherletter
    n number nd nl no decimalnumber letternumber othernumber digit p punctuation punct pc pd pe pf
    pi po ps s symbol sc sk sm so currencysymbol mathsymbol modifiersymbol othersymbol z separator
    zl zp zs c other cc cf control cntrl format han hani hiragana hira katakana kana hangul hang
    """
)
"""Those that contain both cases of every letter that they contain, so that `(?i:...)` changes
nothing in them."""

_VALUES = {"script": _SCRIPTS, "sc": _SCRIPTS, "generalcategory": _CATEGORIES, "gc": _CATEGORIES}


def known_property(name: str, dialect: Dialect) -> str | None:
    """Return the name by which both engines know a property, or None if there is none."""
    key, separator, value = name.replace(":", "=").partition("=")
    if not separator:
        return name if loose(name) in _CATEGORIES | _SCRIPTS | _BINARY else None
    if dialect == "oniguruma":
        return None
    return value if loose(value) in _VALUES.get(loose(key), ()) else None


def loose(name: str) -> str:
    """Return a property's name as names are compared."""
    return name.translate(_IGNORED).lower()


_IGNORED = str.maketrans("", "", " -_")


_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_CODES = {
    "regex": re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})"),
    "oniguruma": re.compile(r"x([0-7][0-9A-Fa-f])|u([0-9A-Fa-f]{4})|x\{([0-9A-Fa-f]{1,8})\}"),
}
_REMEDIES = {
    "N": r"write [^\n]",
    "X": "write the characters that it should match, such as .\\p{M}*",
    "K": "put what comes before into a lookbehind, (?<=...)",
    "Z": r"write \z",
    "x": "write the character itself, or \\uHHHH",
}
# Joiners are word characters to `regex` only; these numbers to a bare \w of Oniguruma only.
_JOINERS = r"\u200c\u200d"
_NUMBERS = r"\u00b2\u00b3\u00b9\u00bc-\u00be"
WORD_ITEMS = rf"\w{_JOINERS}"  # what `\w` of `regex` is to Oniguruma, in brackets
NOT_WORD = f"[^{WORD_ITEMS}]"  # what `\W` of `regex` is to Oniguruma, in brackets and by itself


class CharacterSet(Struct, frozen=True):
    r"""A set of characters: its spellings for each engine in brackets, and by itself (bare)."""

    regex: str
    oniguruma: str
    bare_regex: str
    bare_oniguruma: str
    name: str = ""  # of a property, folded


def _alike(text: str, name: str = "") -> CharacterSet:
    return CharacterSet(text, text, text, text, name)


def _listed(items: str) -> CharacterSet:
    return CharacterSet(items, items, f"[{items}]", f"[{items}]")


_SETS: dict[Dialect, dict[str, CharacterSet]] = {
    "regex": {
        **{letter: _alike(f"\\{letter}") for letter in "dDsS"},
        "w": CharacterSet(r"\w", WORD_ITEMS, r"\w", f"[{WORD_ITEMS}]"),
        "W": CharacterSet(r"\W", NOT_WORD, r"\W", NOT_WORD),
        "h": _listed(r"\t\p{Zs}"),
    },
    "oniguruma": {
        **{letter: _alike(f"\\{letter}") for letter in "dDsS"},
        "w": CharacterSet(rf"[\w--[{_JOINERS}]]", r"\w", rf"[\w{_NUMBERS}--[{_JOINERS}]]", r"\w"),
        "W": CharacterSet(rf"\W{_JOINERS}", r"\W", rf"[\W{_JOINERS}--[{_NUMBERS}]]", r"\W"),
        "h": _listed("0-9a-fA-F"),
        "H": _alike("[^0-9a-fA-F]"),
        "N": _alike(r"[^\n]"),
    },
}


def word_set(dialect: Dialect) -> CharacterSet:
    r"""Return the word characters that `\b` looks for."""
    return _SETS[dialect]["w"]


def read_set(reader: Reader) -> CharacterSet | None:
    r"""Return the set of characters of the escape whose backslash was read.

    None, with nothing read, if the escape is of another kind.
    """
    if reader.next in ("p", "P"):
        return _read_property(reader)
    characters = _SETS[reader.dialect].get(reader.next)
    if characters is not None:
        reader.take()
    return characters


def _read_property(reader: Reader) -> CharacterSet:
    start = reader.at - 1
    negated = reader.take() == "P"
    if reader.accept("{"):
        name = reader.until("}", start)
    else:
        name = reader.take()
        if reader.dialect == "oniguruma":  # which takes it for the letter p
            reader.refuse(start, READ_OTHERWISE, f"write \\p{{{name or 'L'}}}")
    if name.startswith("^"):
        negated, name = not negated, name[1:]
    known = known_property(name, reader.dialect)
    if known is None:
        reader.refuse(
            start,
            NOT_SUPPORTED,
            r"use a general category or a script, such as \p{Lu} and \p{Han}, or write a range",
        )
    return _alike(f"\\{'P' if negated else 'p'}{{{known}}}", loose(known))


def read_character(reader: Reader) -> str:
    r"""Return the character of the escape whose backslash was read."""
    start = reader.at - 1
    code = _CODES[reader.dialect].match(reader.text, reader.at)
    if code:
        reader.at = code.end()
        number = int(code[code.lastindex or 0], 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            reader.refuse(start, "is no character")
        return chr(number)
    letter = reader.take()
    if not letter:
        reader.refuse(start, "is at the end", "write \\\\ for a backslash")
    if letter in _CONTROLS:
        return _CONTROLS[letter]
    if letter.isascii() and letter.isalnum():
        reader.refuse(start, NOT_SUPPORTED, _REMEDIES.get(letter, ""))
    return letter


def spelled(character: str, special: frozenset[str]) -> str:
    """Return a character's spelling, which both engines read alike."""
    if character in special:
        return "\\" + character
    named = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(character)
    if named:
        return named
    if character.isprintable() or ord(character) > 0xFFFF:
        return character
    return f"\\u{ord(character):04x}"


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
        is_same = name in _SAME_POSIX
        word = word_set(self.dialect)
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
        has_marks = characters.name not in WITHOUT_CASE or characters.name.startswith("m")
        if self.flags.ignore_case and characters.name and not is_letters and has_marks:
            self.reader.refuse(start, f"{READ_OTHERWISE} under (?i", _IN_PART)
        regex = characters.regex
        opposites: tuple[str, ...] = ()
        if characters.name or len(regex) == 2:  # of \p{L}, \P{L}; of \d, \D
            opposites = (regex[:2].swapcase() + regex[2:],)
        folds = self.flags.ignore_case and is_letters
        return _Item(regex, characters.oniguruma, opposites=opposites, folds_with_marks=folds)

    def _range(self, low: str, high: str, start: int) -> _Item:
        text = "-".join(spelled(end, _SPECIAL) for end in dict.fromkeys((low, high)))
        if not self.flags.ignore_case:
            return _Item(text, text)
        letters = ignored_case.letters_of_range(low, high)
        if letters is None or not letters.isascii():
            self.reader.refuse(start, f"{READ_OTHERWISE} under (?i", _IN_PART)
        if not letters:
            return _Item(text, text)
        if self.spells_out:
            cases = ignored_case.variants(letters, self.dialect)
            text = "".join(spelled(letter, _SPECIAL) for letter in cases)
        return _Item(text, text, letters=letters.lower())

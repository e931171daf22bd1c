r"""Escapes, `\...`: characters, and sets of characters such as `\d` and `\p{L}`.

The names in `\p{NAME}` are those that mean the same characters to both engines. Scripts that
Unicode added after version 15 are left out: older releases of Hugging Face's engine cannot load a
file that names them.
"""

from __future__ import annotations

import re

from msgspec import Struct

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
WORD_ITEMS = rf"\w{_JOINERS}"
r"""What `\w` of `regex` is to Oniguruma, in brackets."""
NOT_WORD = f"[^{WORD_ITEMS}]"
r"""What `\W` of `regex` is to Oniguruma, in brackets and by itself."""


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

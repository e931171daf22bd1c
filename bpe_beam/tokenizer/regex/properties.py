r"""The names in `\p{NAME}` that mean the same characters to `regex` and to Hugging Face's engine.

Both compare names without case, spaces, hyphens and underscores. Scripts that Unicode added after
version 15 are left out: older releases of Hugging Face's engine cannot load a file that names them.
"""

from __future__ import annotations

from bpe_beam.tokenizer.regex.fragment import Dialect


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

_VALUES = {
    "script": _SCRIPTS,
    "sc": _SCRIPTS,
    "generalcategory": _CATEGORIES,
    "gc": _CATEGORIES,
}


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

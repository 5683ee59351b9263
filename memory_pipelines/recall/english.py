"""English words as search terms: Porter's stems, irregular forms, everyday synonyms of family and pictures.

Belongs here: what makes two forms of a word one term. Does not belong here: cutting text into words (``text``),
weights of terms.
"""

from functools import lru_cache
from itertools import pairwise

_FORMS = """
go went gone|buy bought|run ran|get got gotten|take took taken|give gave given|make made|see saw seen|come came
meet met|win won|lose lost|begin began begun|write wrote written|speak spoke spoken|think thought|teach taught
catch caught|bring brought|feel felt|find found|leave left|keep kept|tell told|say said|sell sold|send sent
spend spent|build built|eat ate eaten|drink drank drunk|drive drove driven|ride rode ridden|fly flew flown
grow grew grown|know knew known|throw threw thrown|draw drew drawn|wear wore worn|break broke broken
choose chose chosen|fall fell fallen|forget forgot forgotten|swim swam swum|sing sang sung|hear heard|hold held
lead led|learn learnt|mean meant|pay paid|sit sat|sleep slept|stand stood|understand understood|become became
fight fought|seek sought|steal stole stolen|wake woke woken|freeze froze frozen|rise rose risen|hide hid hidden
bite bit bitten|blow blew blown|deal dealt|feed fed|lend lent|shoot shot|stick stuck|strike struck|swear swore
child children|person people|man men|woman women|wife wives|mouse mice|foot feet|tooth teeth|knife knives
mom mother mum mommy mummy|dad father daddy|kid kids|photo photograph photography picture pic
"""
_BASE = {form: group.split()[0] for group in _FORMS.replace("\n", "|").split("|") if group for form in group.split()}

_STEP_2 = (
    "ational ate|tional tion|enci ence|anci ance|izer ize|abli able|alli al|entli ent|eli e|ousli ous|ization ize|"
    "ation ate|ator ate|alism al|iveness ive|fulness ful|ousness ous|aliti al|iviti ive|biliti ble"
)
_STEP_3 = "icate ic|ative |alize al|iciti ic|ical ic|ful |ness "
_STEP_4 = "al ance ence er ic able ible ant ement ment ent ou ism ate iti ous ive ize ion"


def _rules(table: str) -> tuple[tuple[str, str], ...]:
    """(suffix, what takes its place), longest suffix first."""
    pairs = ((rule.partition(" ")[0], rule.partition(" ")[2]) for rule in table.split("|"))
    return tuple(sorted(pairs, key=lambda pair: -len(pair[0])))


_MAPPED = (_rules(_STEP_2), _rules(_STEP_3))
_CUT = tuple(sorted(_STEP_4.split(), key=lambda suffix: -len(suffix)))


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Porter's stem of the word's base form (``went``: ``go``); other than lower-case ASCII words stay.

    Source: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980. Of few irregular verbs and
    nouns, and of words for parents, children and pictures, the first of the group is stemmed.
    """
    word = _BASE.get(word, word)
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    word = _without_inflection(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    for rules in _MAPPED:
        for suffix, instead in rules:
            if word.endswith(suffix):
                base = word[: -len(suffix)]
                word = base + instead if _measure(base) > 0 else word
                break
    return _without_ending(_without_suffix(word))


def _without_inflection(word: str) -> str:
    """Steps 1a and 1b: plurals, -ed, -ing."""
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix) and _has_vowel(word[: -len(suffix)]):
            return _repair(word[: -len(suffix)])
    return word


def _without_suffix(word: str) -> str:
    """Step 4."""
    for suffix in _CUT:
        if word.endswith(suffix):
            base = word[: -len(suffix)]
            return base if _measure(base) > 1 and (suffix != "ion" or base.endswith(("s", "t"))) else word
    return word


def _without_ending(word: str) -> str:
    """Step 5: final e and ll."""
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _is_closed(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _repair(base: str) -> str:
    """What Porter's step 1b does after it took -ed or -ing."""
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if len(base) > 1 and base[-1] == base[-2] and not _is_vowel(base, len(base) - 1) and base[-1] not in "lsz":
        return base[:-1]
    return base + "e" if _is_closed(base) and _measure(base) == 1 else base


def _is_closed(base: str) -> bool:
    """Porter's *o: ends consonant, vowel, consonant, the last not w, x or y."""
    last = len(base) - 1
    return (
        last >= 2
        and base[last] not in "wxy"
        and not _is_vowel(base, last)
        and _is_vowel(base, last - 1)
        and not _is_vowel(base, last - 2)
    )


def _is_vowel(word: str, i: int) -> bool:
    return word[i] in "aeiou" or (word[i] == "y" and i > 0 and not _is_vowel(word, i - 1))


def _has_vowel(word: str) -> bool:
    return any(_is_vowel(word, i) for i in range(len(word)))


def _measure(word: str) -> int:
    """Porter's m: how many vowel runs are followed by a consonant run."""
    vowels = [_is_vowel(word, i) for i in range(len(word))]
    return sum(1 for a, b in pairwise(vowels) if a and not b)

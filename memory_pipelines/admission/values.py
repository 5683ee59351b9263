"""The value of a fact: cut out of a phrase, cleaned for display, made canonical for identity.

Belongs here: what turns "the spicy food a lot" into ``spicy food``. Does not belong here: finding
it. Canonical values join languages through the ontology's small alias list, no model takes part.
"""

import re
import unicodedata
from itertools import takewhile

from memory_pipelines.admission.ontology import Pattern, aliases, relation_of, value_lists
from memory_pipelines.stores.vault import has_token

MAX_WORDS = 5
_LISTS = {
    "zh": re.compile("和|、|跟|以及|还有|与|及|或者|或|,"),
    "en": re.compile(r"\s*,\s*(?:and |or )?|\s+(?:and|or|&)\s+", re.I),
}
_TAILS = {
    "zh": re.compile(
        "(?:了|的|呢|啊|呀|哦|吧|啦|哈|嘛|哟|东西|食物|这种东西|制品|类食物|这个城市|工作|生活|上班|附近|那边|这边|"
        "[^\u3400-\u9fffA-Za-z0-9])+$"
    ),
    # One character a turn outside the words: a nested quantifier here would explode on "! ! ! !".
    "en": re.compile(
        r"(?:\s+(?:a lot|very much|so much|a bit|too|either|as well|now|these days|at the moment|right now|any ?more"
        r"|any longer|currently|please|though|again|most|best|the most|at all|instead|already|recently|lately|to"
        r"|yesterday"
        r"|earlier|(?:as of|because|since|so|but|when|which|who|that|with|near|until|if|every|after|before) .*"
        r"|for (?:\d|many|a few|over|about|the past|work|years|one|two|three|four|five|six|seven|eight|nine|ten|twenty|ages|some).*|(?:last|this|next) \w+"  # noqa: E501
        r"|\w+ (?:years?|months?|weeks?) ago)|[^\w)])+$",
        re.I,
    ),
}
_HEADS = {
    "zh": re.compile(
        "^(?:[一两二三四]?(?:只|条|匹)|[一两二三四五六几](?:缸|对|头|窝)(?!一)|所有的?|任何|一切|各种|那种|这种|太(?!极)|一些|很多|大部分)+"
    ),
    "en": re.compile(
        r"^(?:(?:a|an|the|my|our|some|all|any|both|eating|drinking|most|every|kind of|sort of|just|as) )+", re.I
    ),
}


def canonical(value: str) -> str:
    """The identity of a value: NFKC, lower case, no article, common nouns singular, the alias list's first name."""
    shown = unicodedata.normalize("NFKC", value).split()
    common = bool(shown) and shown[-1].islower()
    value = " ".join(shown).casefold()
    value = re.sub(r"^(?:to|a|an|the) ", "", value)
    if found := aliases().get(value):
        return found
    if common and re.fullmatch(r"[a-z][a-z -]+[^sui']s", value):
        keeps_ie = value.endswith(("movies", "cookies", "pies", "ties", "selfies", "smoothies", "brownies", "zombies"))
        value = value[:-3] + "y" if value.endswith("ies") and not keeps_ie else value[:-1]
    value = re.sub("^(?:吃|喝)(?=.)", "", value)
    return aliases().get(value, value)


def _clean(part: str, language: str) -> str:
    part = _TAILS[language].sub("", part.strip(" '\""))
    return _HEADS[language].sub("", part).strip()


def _starts_badly(low: str, language: str) -> bool:
    _, bad, _ = value_lists(language)
    return low.startswith(bad) if language == "zh" else any(low == b or low.startswith(b + " ") for b in bad)


def acceptable(value: str, language: str) -> bool:
    """False for what names nothing, is about the partner, is a sensitive field, or is too long to be a value."""
    empty, _, _ = value_lists(language)
    low = value.casefold()
    if not low or low in empty or not re.search(r"\w", low) or has_token(value):
        return False
    if language == "zh":
        return len(value) <= 14 and not _starts_badly(low, language)
    return len(low.split()) <= MAX_WORDS and not _starts_badly(low, language)


def _at_hand(raw: str) -> bool:
    """ "the colour", "holding them": about something present, not a taste ("the Beatles", "the ocean" are)."""
    definite = re.match(r"the ([\w'-]+)", raw)
    _, _, generic = value_lists("en")
    if definite and not definite[1][0].isupper() and definite[1] not in generic:
        return True
    return re.search(r"\b(?:it|them|him|her|this|that|these|those|you)$", raw, re.I) is not None


_REST = re.compile(r"[A-Za-z'-]*")
_LEADS_ON = re.compile(
    r"(?:\s+(?:in|of|to|and|or|a|an|the|my|our|your|his|her|their|for|with|at|on|by|from|as|that|who|which|how|what))+$",
    re.I,
)


def stated(match: re.Match[str], language: str) -> str:
    """The value of a match as it was said. One that a pattern's limit has cut goes to the end of its last word, and
    does not end with a word that leads on: "a positive imp|act on us", "local talent and| bring"."""
    text, end = match["v"], match.end("v")
    if language != "en" or end == len(match.string):
        return text.strip()
    if text[-1:].isalpha() and (rest := _REST.match(match.string, end)):
        text += rest[0]
    return _LEADS_ON.sub("", text.strip())


_AFTERTHOUGHT = re.compile(
    r"\s*(?:very|so|super|really|too|quite|great|good|nice|bad|not|but|thanks?|please|i|we|you|it|he|she|they)\b", re.I
)
"""How a remark begins that follows an enumeration after a comma: it ends the list."""


def split_values(raw: str, language: str, multi: bool, taste: bool = False) -> list[str]:
    """The clean, acceptable values of a raw span: one, or each of an enumeration if ``multi``.

    None if the span as a whole is talk about something at hand: of a ``taste``, definite things too."""
    if _starts_badly(raw.strip().casefold(), language):
        return []
    # Tails are cut from the whole first: "likes tea because coffee and cake are dear" holds one value.
    whole = _TAILS[language].sub("", raw.strip(" '\""))
    parts = _LISTS[language].split(whole) if multi else [whole]
    if language == "en":
        parts = list(takewhile(lambda part: not _AFTERTHOUGHT.match(part), parts))
    if taste and language == "en":
        parts = [part for part in parts if not _at_hand(part.strip())]
    cleaned = (_clean(part, language) for part in parts)
    return [value for value in cleaned if acceptable(value, language)]


def article(noun: str) -> str:
    """``noun`` with the indefinite article, for display."""
    if re.match(r"(?:an?|the|two|three|four|\d) ", noun, re.I) or not noun.isascii():
        return noun
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def seat(said: str) -> tuple[str, str]:
    """(canonical value, display form) of a kind of seat: "window seats" and 靠窗的座位 are one."""
    shown = re.sub(
        r"^(?:an?|the) |(?:的)?(?:座位|位置|位子|座)$|(?<=window)(?: seats?)|(?<=aisle)(?: seats?)",
        "",
        said.strip(),
        flags=re.I,
    )
    return canonical(shown), shown


def shape(pattern: Pattern, match: re.Match[str], value: str, language: str) -> tuple[str, str]:
    """(canonical value, display form) of one value of a match."""
    groups = match.groupdict()
    name, base = groups.get("name") or "", pattern.predicate
    if pattern.prefix:
        drinks = language == "zh" and "喝" in match[0]
        return "no " + canonical(value), ("不喝" if drinks else pattern.prefix) + value
    if base in ("family_member", "pet"):
        kind = relation_of().get(value.casefold(), canonical(value)) if base == "family_member" else canonical(value)
        if name:
            return f"{kind}:{name.casefold()}", f"{value}{name}" if language == "zh" else f"{value} {name}"
        count = groups.get("count") or ""
        plural = count.casefold() not in ("", "a", "an", "one")
        text = match.string[match.start("count") : match.end("v") + (1 if plural else 0)] if count else value
        return kind, text.strip() if language == "zh" else article(text.strip())
    if base in ("job", "possession") and language == "en":
        return canonical(value), article(value)
    return canonical(value), value

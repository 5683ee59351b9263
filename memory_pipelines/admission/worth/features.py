"""What the worth model reads of a text: words, kinds of words, and signs.

Belongs here: text to named features. Does not belong here: weights (``model``). A feature depends on the text
alone. Kinds of words (``data/worth_words.yaml``) let the model read what it was not trained on: "my aunt" and "my
nephew".
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise

from memory_pipelines.admission.ontology import package_data
from memory_pipelines.admission.script import is_chinese, simplified

MAX_CHARACTERS = 1200
"""Longer texts are read in part, the beginning and the end: what is worth keeping often comes last."""
_TOKEN = re.compile("[a-zà-ÿ']+|[0-9]+|[\u3400-\u9fff]|[?!.,;:…—“”\"()\\[\\]]|[^\\s\\w]")
_DIGITS = re.compile("[0-9]")
_OWN_NAME = re.compile("\\b(?:[Mm]y|[Oo]ur)(?: [\\w'-]+){0,2} [A-Z0-9]|[我咱][\u3400-\u9fff]{0,6} ?[A-Za-z]*[A-Z0-9]")
"""Something of one's own with a name or a model: "my old Dawes", 我那台A7."""
_OPEN, _CLOSE = frozenset("“「『"), frozenset("”」』")
_BREAKS, _COLONS = frozenset("?!.,;:…。，；：、"), frozenset(":：")
_WHO = {"me": "self", "us": "self", "kin": "kin", "other": "theirs", "farkin": "theirs", "they": "they", "you": "you"}
_THEIRS = frozenset(("other", "farkin"))
_LINKS = frozenset(("的", "家", "们", "那", "old", "best", "new", "former"))
"""Words between "my" and "friend" that leave the friend the one that is spoken of."""


_Entries = Mapping[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]


@cache
def _kinds(language: str) -> _Entries:
    """First token → (all tokens of an entry, its kinds), longest first."""
    rows: Mapping[str, list[str]] = package_data("worth_words.yaml")[language]
    found: dict[tuple[str, ...], list[str]] = {}
    for kind, entries in rows.items():
        for entry in entries:
            tokens = found.setdefault(tuple(_TOKEN.findall(prepared(entry))), [])
            if kind not in tokens:
                tokens.append(kind)
    by_first: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for tokens_of, kinds in sorted(found.items(), key=lambda item: (-len(item[0]), item[0])):
        by_first.setdefault(tokens_of[0], []).append((tokens_of, tuple(kinds)))
    return {first: tuple(entries) for first, entries in by_first.items()}


def prepared(text: str) -> str:
    """The text as the model reads it: simplified, lower case, digits alike, cut in the middle if it is long."""
    if len(text) > MAX_CHARACTERS:
        text = text[: MAX_CHARACTERS // 2] + " … " + text[-MAX_CHARACTERS // 2 :]
    return _DIGITS.sub("0", simplified(text).casefold().replace("’", "'").replace("？", "?").replace("！", "!"))


def _stems(word: str) -> Iterator[str]:
    for ending in ("'s", "s", "es", "ed", "ing", "d"):
        if len(word) > len(ending) + 2 and word.endswith(ending):
            yield word[: -len(ending)]


def _tokens(text: str, language: str) -> list[tuple[str, tuple[str, ...]]]:
    """(word, its kinds) in order; entries of the list are words, of Chinese all other characters stand alone."""
    entries, words = _kinds(language), _TOKEN.findall(text)
    gap = "" if language == "zh" else " "
    found: list[tuple[str, tuple[str, ...]]] = []
    at = 0
    while at < len(words):
        word = words[at]
        here = entries.get(word)
        if here is None and len(word) > 3 and word[0].isalpha():
            here = next((entries[stem] for stem in _stems(word) if stem in entries), None)
        for tokens, kinds in here or ():
            size = len(tokens)
            if size == 1 or tuple(words[at + 1 : at + size]) == tokens[1:]:
                found.append((gap.join(words[at : at + size]), kinds))
                at += size
                break
        else:
            found.append((word, ()))
            at += 1
    return found


def features(text: str) -> dict[str, float]:
    """Name → value in (0, 1] of all features of a text: ``w`` words, ``c`` pairs of characters or words, ``k``
    kinds, ``s`` what stands beside what, ``v`` who is spoken of, ``p`` the first of them beside a kind, ``f`` signs
    and sizes."""
    named = _OWN_NAME.search(text) is not None
    text = prepared(text)
    language = "zh" if is_chinese(text) else "en"
    tokens = _tokens(text, language)
    made: dict[str, float] = {f"f={language}": 1.0}
    present: list[str] = []
    shown: list[str] = ["^"]
    for word, kinds in tokens:
        made[f"w={word}"] = 1.0
        shown.append(kinds[0].upper() if kinds else word)
        for kind in kinds:
            if kind not in present:
                present.append(kind)
    shown.append("$")
    for left, right in pairwise(shown):
        made[f"s={left} {right}"] = 0.7
    if language == "zh":
        for left, right in pairwise(re.sub("[^\u3400-\u9fff]", "", text)):
            made[f"c={left}{right}"] = 0.5
    else:
        words = [word for word, _ in tokens if word[0].isalpha()]
        for left, right in pairwise(words):
            made[f"c={left} {right}"] = 0.5
    for kind in present:
        made[f"k={kind}"] = 1.0
    made |= _signs(text, tokens, present)
    mark = "?" if "?" in text else "."
    first, voices = _voices(tokens)
    for name in voices:
        made[f"v={name}"] = made[f"v={name} {mark}"] = 0.8
    for kind in present:
        made[f"p={first}&{kind}"] = 0.6
    if named:
        made["f=own name"] = made[f"f=own name {mark}"] = 1.0
    return made


def _voices(tokens: list[tuple[str, tuple[str, ...]]]) -> tuple[str, list[str]]:
    """Who is spoken of first; signs of who is spoken of outside and inside of what is quoted and of what clauses begin
    with."""
    outside: dict[str, None] = {}
    inside: dict[str, None] = {}
    found: dict[str, None] = {}
    quoting = reported = told = False
    begins = True
    for at, (word, kinds) in enumerate(tokens):
        if not kinds or len(word) == 1:
            if word in _OPEN or word in _CLOSE or word == '"':
                quoting = word in _OPEN or (word == '"' and not quoting)
                continue
            if word in _BREAKS:
                told = told or (reported and word in _COLONS)
                begins = True
                continue
            if not kinds:
                begins = False
                continue
        if begins:
            found[f"begins {kinds[0]}"] = None
            begins = False
        reported = reported or "report" in kinds or "media" in kinds
        who = next((_WHO[kind] for kind in kinds if kind in _WHO), "")
        if who == "self" and _of_another(tokens, at + 1):
            who = ""
        if who:
            (inside if quoting or told else outside)[who] = None
    first = next(iter(outside), "nobody")
    found[f"first {first}"] = None
    if inside:
        found["quoted"] = None
    if "self" in outside:
        found["self and theirs" if "theirs" in outside else "self"] = None
    elif "self" in inside:
        found["self quoted"] = None
    elif "theirs" in outside and "kin" not in outside:
        found["theirs alone"] = None
    elif "they" in outside and "kin" not in outside:
        found["they alone"] = None
    return first, list(found)


def _of_another(tokens: list[tuple[str, tuple[str, ...]]], at: int) -> bool:
    """Whether "my" goes on as "my friend"."""
    while at < len(tokens) and tokens[at][0] in _LINKS:
        at += 1
    return at < len(tokens) and not _THEIRS.isdisjoint(tokens[at][1])


def _signs(text: str, tokens: list[tuple[str, tuple[str, ...]]], present: list[str]) -> dict[str, float]:
    asked = "?" in text
    words = sum(word[0].isalnum() for word, _ in tokens)
    size = next(
        name for name, limit in (("1", 2), ("3", 4), ("6", 8), ("12", 16), ("30", 40), ("more", 10**9)) if words < limit
    )
    made = {f"f=size {size}": 1.0}
    if asked:
        made["f=?"] = 1.0
        made["f=? last"] = 1.0 if text.rstrip().endswith("?") else 0.3
    if "!" in text:
        made["f=!"] = 0.5
    if not ({"me", "us", "kin"} & set(present)):
        made["f=nobody"] = 1.0
        made[f"f=nobody {'?' if asked else '.'} {size}"] = 1.0
    else:
        made[f"f=somebody {'?' if asked else '.'}"] = 1.0
    return made

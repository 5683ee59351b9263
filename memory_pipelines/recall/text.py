"""Text as recall sees it: search tokens, language by script, estimated prompt tokens.

Belongs here: pure functions over strings, without dictionaries or models. Does not belong here:
scoring, or the labels of the batch steps.
"""

import re
import unicodedata
from operator import attrgetter

from memory_pipelines.recall.english import stem

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_CJK = _HAN + "\u3000-\u30ff\uac00-\ud7af\uff00-\uffef"
_RUN = re.compile(
    rf"(?P<han>[{_HAN}]+)|(?P<number>\d+(?:,\d{{3}})+(?!\d)(?:\.\d+)?|\d+\.\d+)|(?P<word>(?:(?![{_HAN}])[^\W_])+)"
)
_PART = re.compile(r"\d+|\D+")
_HAN_CHARACTER = re.compile(rf"[{_HAN}]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_PROMPT_TOKEN = re.compile(rf"(?P<cjk>[{_CJK}])|(?P<word>[^\W_]{{1,12}})|(?P<ascii>[!-~])|(?P<other>\S)")
_GROUP = attrgetter("lastindex")
_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_PROMPT_COST = (0.0, 1.0, 1.3, 0.25, 1.0)
"""By number of the group."""
_MOST_COST = 2
"""Above the dearest character (1.3): what fits at this price fits, without a count."""

_FUNCTION_WORDS = (
    "a an the and or but if of at by for with about to from in on up is am are was were be been being do does did "
    "have has had having i me my mine we our us you your he him his she her it its they them their this that these "
    "those what which who whom where when why how can could would should will shall may might there here so than "
    "too very not no s t m re ve ll d don isn aren wasn please tell know"
)
_STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
_STOP_HAN = frozenset("的了好是我你他她它们在有和与或吗呢吧啊呀哦嗯哪什么怎谁几这那也都就还又很把被给对从请要会能可以")


def tokens(text: str) -> list[str]:
    """Search tokens of ``text`` in order, repeats kept.

    NFKC and lower case first. A run of Han characters gives its characters and its pairs of
    neighbours (no segmenter: a pair survives any segmentation); a latin word gives its stem; a
    word of letters and digits gives itself and its parts (``iphone15``: ``iphone15 iphone 15``);
    a number loses its thousands separators. Function words are left out, and pairs made of
    nothing else.
    """
    found: list[str] = []
    for match in _RUN.finditer(unicodedata.normalize("NFKC", text).lower()):
        run = match.group()
        if match.lastgroup == "han":
            found.extend(c for c in run if c not in _STOP_HAN)
            pairs = (run[i : i + 2] for i in range(len(run) - 1))
            found.extend(p for p in pairs if not (p[0] in _STOP_HAN and p[1] in _STOP_HAN))
        elif match.lastgroup == "number":
            found.append(run.replace(",", ""))
        elif run not in _STOP_WORDS:
            parts = _PART.findall(run)
            found.append(stem(run))
            if len(parts) > 1:
                found.extend(parts)
    return found


def is_pair(token: str) -> bool:
    """Whether a token of :func:`tokens` is a pair of Han characters."""
    return len(token) == 2 and is_han(token[0]) and is_han(token[1])


def is_han(token: str) -> bool:
    """Whether a token is one Han character."""
    return len(token) == 1 and _HAN_CHARACTER.match(token) is not None


def language(text: str) -> str | None:
    """``zh`` or ``en`` by script, None where there is neither (numbers, emoji, nothing).

    A Han character counts as much as a latin word.
    """
    han, latin = len(_HAN_CHARACTER.findall(text)), len(_LATIN_WORD.findall(text))
    if han == latin == 0:
        return None
    return "zh" if han >= latin else "en"


def prompt_tokens(text: str) -> float:
    """Estimated tokens of a language model: 1 per CJK character, 1.3 per word of up to 12
    letters (longer ones count again), .25 per ASCII mark, 1 per other sign."""
    # mapped, not looped over: every first recall of a person counts some fifty texts
    return sum(map(_PROMPT_COST.__getitem__, map(_GROUP, _PROMPT_TOKEN.finditer(text))))


def clip(text: str, limit: float) -> str:
    """The longest beginning of ``text`` within ``limit`` prompt tokens, with … where it was cut."""
    if _MOST_COST * len(text) <= limit:
        return text
    spent = 0.0
    for match in _PROMPT_TOKEN.finditer(text):
        spent += _PROMPT_COST[_GROUP(match)]
        if spent > limit:
            return text[: match.start()].rstrip() + "…"
    return text


def one_line(text: str) -> str:
    """The text with every run of white space and control characters as one space."""
    return _BLANK.sub(" ", text).strip(" ")


def well_formed(text: str) -> str:
    """The text with lone surrogates, which no encoder takes, as ``?``."""
    return text.encode("utf-8", "replace").decode("utf-8")

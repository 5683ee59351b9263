"""Step 1, rows: readable text, and named rules for rows that are no dialogue.

Belongs here: what can be said of one row alone. Does not belong here: parsing (``landing``), or
what needs other rows (``exchanges``). Emoji stay: they carry meaning. Ids were made before, from
the text as it was read, so a changed rule changes no id.
"""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.model import Role

_TAG = re.compile(r"<(?:/?[a-zA-Z][^<>]{0,500}|!--(?:(?!<!--).){0,2000}?--)>", re.S)
_BREAK = re.compile(r"<(?:br|/p|/div|/li)\s*/?>", re.I)
_INVISIBLE = re.compile("[\u0000-\u0008\u000b-\u001f\u007f\u200b\u2060\ufeff]")
_SPACES = re.compile(r"[ \t\u00a0\u3000]+")
_MOJIBAKE = re.compile("[ÃÂâäåæçèé][\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹Œ''•–—˜™š›œŸ]")
_FULL_WIDTH = {code: code - 0xFEE0 for code in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))}

_HEARTBEAT = re.compile(r"[\[<({\s]*(?:heart[-_ ]?beat|keep[-_ ]?alive|ping|pong|心跳)[\])}>\s]*", re.I)
_TRACKING = re.compile(
    r"\[(?:event|track(?:ing)?|埋点)[\]:].*|(?:track(?:ing)?_event|page_?view|click_event|utm_\w+)\b.*|"
    r"\{\s*\"(?:event|event_type|track)\".*\}",
    re.I | re.S,
)
_AUTOMATIC = re.compile(
    r"自[动動]回[复復覆]|系[统統]自[动動](?:应答|應答|消息|通知)|[本此](?:消息|信息).{0,4}系[统統]自[动動]|客服(?:[当當]前|目前)?(?:繁忙|忙碌)|正在排[队隊]|非工作[时時][间間]|"
    r"\b(?:automated|automatic|auto)[- ]?(?:reply|response|message)\b|\bout of (?:the )?office\b|"
    r"\ball (?:of )?our agents are (?:currently )?busy\b|\bplease do not reply\b",
    re.I,
)


def repair_mojibake(text: str) -> str:
    """UTF-8 that was once read as Windows-1252, read right; anything else unchanged."""
    if not _MOJIBAKE.search(text):
        return text
    raw = bytearray()
    for char in text:  # cp1252 leaves five bytes undefined, which writers pass through as they are
        try:
            raw += char.encode("cp1252")
        except UnicodeEncodeError:
            if ord(char) > 0xFF:
                return text
            raw.append(ord(char))
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return text


def clean_text(text: str) -> str:
    """Readable text: no mark-up, entities, invisible characters or runs of blanks; NFC; emoji kept."""
    text = repair_mojibake(text)
    if "<" in text:
        text = _TAG.sub(" ", _BREAK.sub("\n", text))
    if "&" in text:
        text = html.unescape(text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text)).translate(_FULL_WIDTH)
    lines = (_SPACES.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


RULES: tuple[tuple[str, Callable[[str, str], bool]], ...] = (
    ("system_row", lambda role, _: role == Role.SYSTEM),
    ("unchosen_branch", lambda role, _: role == Role.UNCHOSEN),
    ("empty", lambda _, text: not text),
    ("heartbeat", lambda _, text: len(text) < 40 and _HEARTBEAT.fullmatch(text) is not None),
    ("tracking_event", lambda _, text: text[0] in "[{tpcuTPCU埋" and _TRACKING.fullmatch(text) is not None),
    ("automatic_reply", lambda role, text: role == Role.AGENT and _AUTOMATIC.search(text[:400]) is not None),
)
"""In this order; the first rule that holds counts the row."""


def filter_rule(role: str, text: str) -> str | None:
    """The name of the rule that drops a row of cleaned ``text``, or None."""
    return next((name for name, holds in RULES if holds(role, text)), None)


@dataclass(frozen=True)
class Cleaned:
    """``turns`` with readable text; ``filtered`` counts dropped rows per rule."""

    turns: pa.Table
    filtered: dict[str, int]


def clean_turns(turns: pa.Table) -> Cleaned:
    """Clean a TURNS table; rows in = rows out + filtered."""
    texts = [clean_text(text) for text in turns["text"].to_pylist()]
    rules = [filter_rule(role, text) for role, text in zip(turns["role"].to_pylist(), texts, strict=True)]
    column = turns.schema.get_field_index("text")
    cleaned = turns.set_column(column, "text", pa.array(texts, pa.string()))
    kept = cleaned.filter(pc.invert(pa.array([rule is not None for rule in rules], pa.bool_())))
    return Cleaned(kept, dict(sorted(Counter(rule for rule in rules if rule is not None).items())))

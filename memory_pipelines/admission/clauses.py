"""Cutting what somebody said into clauses, and which of them the speaker asserts.

Belongs here: sentences, clauses, quotations, questions, hypotheticals, hedges. Does not belong
here: whom a clause is about and what it says (``facts``).
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from memory_pipelines.admission.ontology import cue
from memory_pipelines.admission.script import is_chinese, simplified

MAX_CLAUSE = 300
_SAID = re.compile(r"(?:说|写道?|道|唱|讲|常说|通知)$|\b(?:says?|said|reads?|read|goes|put it|wrote|line)$", re.I)
"""What a colon follows that quotes somebody."""
_SENTENCE = re.compile(r"[^。！？!?；;\n….]*(?:\.(?!\s|$)[^。！？!?；;\n….]*)*(?P<stop>[。！？!?；;\n….]+|$)")
_CONJOINED = (
    "i|my|we|our|i'm|i've|live|work|love|like|hate|have|own|am|is|lives|works|loves|likes|hates|has|don't|can't|cannot"
    "|moved|also|do not|speak|prefer|he|she|they"
)
_REASON = r"\s*(?:就?会过敏|i(?:'m| am) allergic\s*(?:[.!]|$))"
# A comma between digits, and one before a reason that the clause needs, do not cut.
_SPLIT = re.compile(
    rf"(?:，|(?<!\d),|,(?!\s?\d))(?!{_REASON})|[：()（）—]+|:\s+|\s-\s|(?<=[\u3400-\u9fff])\s+(?=[\u3400-\u9fff])"
    rf"|\s+(?:and|but|so|because|although|though)\s+(?=(?:{_CONJOINED})\b)"
    r"|\s+(?:so|because|although)\s+(?=(?:the|it|there|you|they|please|this)\b)",
    re.I,
)
_QUOTE = re.compile(r"“([^”\n]{1,200})”|「([^」\n]{1,200})」|『([^』\n]{1,200})』|\"([^\"\n]{1,200})\"")
_CARELESSLY = re.compile(r"\b(?:im|dont|doesnt)\b", re.I)
"""What is contracted without an apostrophe."""


def _full_forms(*pairs: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(rf"\b{short}\b", re.I), full) for short, full in pairs)


_CONTRACTIONS = _full_forms(
    ("i'm", "I am"),
    ("can't", "cannot"),
    ("won't", "will not"),
    ("(\\w+)n't", r"\1 not"),
    ("(i|we|you|they)'ve", r"\1 have"),
    ("(i|we|you|they|he|she|it)'d", r"\1 would"),
    ("(i|we|you|they|he|she|it)'ll", r"\1 will"),
    ("(we|you|they)'re", r"\1 are"),
    ("(he|she|it|that|there)'s", r"\1 is"),
    ("(name|job|birthday|home|dog|cat)'s", r"\1 is"),
)
_CARELESS = _full_forms(("dont", "do not"), ("doesnt", "does not"), ("im", "I am"))


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause: normalised ``text``, its span in the source, its sentence's span and what it is.

    ``asserted`` is false for questions, hypotheticals and what depends on them."""

    text: str
    language: str
    start: int
    end: int
    sentence: tuple[int, int]
    asserted: bool
    hedged: bool
    supposed: bool = False
    """Not asserted because it, or what it depends on, is only supposed, quoted or asked back; any other question takes
    something for granted."""
    filled: bool = False
    """Stands after a colon: what is before it may be its name."""


def language_of(text: str) -> str:
    """zh if the text has a Chinese character, else en: the grammar that a clause is read by."""
    return "zh" if is_chinese(text) else "en"


def _mask(match: re.Match[str]) -> str:
    """What is quoted in the first person is somebody's sentence, not the speaker's claim."""
    inner = next(group for group in match.groups() if group is not None)
    if any(cue(lang, "first_person").search(inner) for lang in ("zh", "en")):
        return "□" * len(match[0])
    return " " + inner + " "


def _normalise(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).replace("’", "'")
    for pattern, full in _CONTRACTIONS:
        if "'" not in text:
            break
        text = pattern.sub(full, text)
    if _CARELESSLY.search(text):
        for pattern, full in _CARELESS:
            text = pattern.sub(full, text)
    return " ".join(text.strip(" ,.;:!?~\"'*_").split())


def _pieces(text: str, start: int, end: int) -> list[tuple[int, int]]:
    pieces, at = [], start
    for match in _SPLIT.finditer(text, start, end):
        pieces.append((at, match.start()))
        at = match.end()
    pieces.append((at, end))
    return [(a, b) for a, b in pieces if text[a:b].strip()]


_STATES = re.compile(r"do not |when(?:ever)? (?:i|we|you) |what (?:i|we) \w+ (?:is|was) ", re.I)
_INVERTED = re.compile(r"\w+ (?:i|you|we|he|she|they|it)\b", re.I)


def _is_question(text: str, language: str) -> bool:
    if language == "zh":
        return cue("zh", "question").search(text) is not None
    first = cue("en", "question").match(text)
    if first is None or _STATES.match(text):
        return False  # "when I eat out" begins a statement; a question of that form has its mark
    # "Have you eaten" asks, "have a nice day" does not.
    return first[0].lower() not in ("have", "may", "will") or _INVERTED.match(text) is not None


def clauses(text: str) -> Iterator[Clause]:
    """The clauses of a text in order, in time linear in its length. Clauses above 300 characters are skipped."""
    masked = _QUOTE.sub(_mask, simplified(text).replace("’", "'"))
    for sentence in _SENTENCE.finditer(masked):
        start, end = sentence.span()
        pieces = _pieces(masked, start, sentence.start("stop"))
        if not pieces:
            continue
        asks = "?" in sentence["stop"] or "？" in sentence["stop"]
        normal = [_normalise(masked[a:b]) for a, b in pieces]
        languages = [language_of(piece) for piece in normal]
        # A question's tag makes one of the clause before it.
        tagged_at = len(pieces) - 2 if asks and cue(languages[-1], "tag").fullmatch(normal[-1]) else -1
        supposed = False
        for i, (a, b) in enumerate(pieces):
            piece, lang = normal[i], languages[i]
            filled = i > 0 and masked[pieces[i - 1][1] : a].strip() in (":", "：")
            if filled and _SAID.search(normal[i - 1]):
                supposed = True
            if not piece or b - a > MAX_CLAUSE:
                continue
            supposed = supposed or cue(lang, "hypothetical").search(piece) is not None
            last, tagged = i == len(pieces) - 1, i == tagged_at
            asked = tagged or (asks and last) or _is_question(piece, lang)
            yield Clause(
                text=piece,
                language=lang,
                start=a,
                end=b,
                sentence=(start, end),
                asserted=not (supposed or asked) and "□" not in piece,
                hedged=cue(lang, "hedge").search(piece) is not None,
                supposed=supposed or tagged or "□" in piece,
                filled=filled,
            )

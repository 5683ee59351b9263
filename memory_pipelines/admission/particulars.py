"""What a clause tells of particulars that no single pattern tells: names of relatives, regular events, places of work.

Belongs here: those three. Does not belong here: what any pattern of the ontology states (``facts``).
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from memory_pipelines.admission.clauses import Clause
from memory_pipelines.admission.fact import Fact
from memory_pipelines.admission.values import canonical


def scheduled(event: str, time: str, language: str) -> tuple[str, str]:
    """(value, object) of a regular event at a time of day."""
    return f"{event} {canonical(time)}", f"{event}{time}" if language == "zh" else f"{event} at {time}"


_CLOCK = {
    "zh": r"(?:上午|下午|早上|晚上|中午|凌晨)?\d{1,2}(?:点半?|[:：]\d{2})(?:\d{1,2}分)?",
    "en": r"(?:\d{1,2}(?:[:.]\d\d)? ?(?:am|pm|a\.m\.|p\.m\.|o'clock)|noon)",
}
_MEETING = {
    "zh": re.compile(
        rf"每?(?P<day>周[一二三四五六日天])的?(?P<time>{_CLOCK['zh']})(?:我们?|都|要)*开?(?P<event>[\u4e00-\u9fff]{{0,3}}(?:例会|晨会|周会|会|课))"
    ),
    "en": re.compile(
        rf"every (?P<day>\w+day) at (?P<time>{_CLOCK['en']}) we have (?:our |a |the )?(?P<event>(?:\w+ )?meeting)", re.I
    ),
}


def meeting(said: str, language: str) -> tuple[str, str, str] | None:
    """(event, value, object) of a lesson or meeting on a day of every week at a time: 「每周五下午3点开例会」."""
    match = _MEETING[language].search(said)
    if match is None:
        return None
    event = canonical(match["day"] + match["event"])
    return event, *scheduled(event, match["time"], language)


_REGULAR = re.compile(
    r"(?:every|each|on) (?P<day>(?:other )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun|week)?days?|morning|evening|week))"
    r"(?: (?:morning|afternoon|evening|night)s?)? at "
    r"(?P<time>\d{1,2}(?:[:.]\d\d)? ?(?:am|pm|a\.m\.?|p\.m\.?|o'clock)?|noon)"
    r",? (?:i|we) (?:always |usually )?(?:have|attend|do|run|host|hold|go to|join|take|teach|meet for) "
    r"(?:our|my|an?|the)?\s?(?P<event>(?:[\w-]+ ){0,2}[\w-]+?)(?: (?:with|at|in|on|for|over|and) .*)?",
    re.I,
)


def regular(clause: Clause) -> list[Fact]:
    """An event on a day of every week at a time: "every Tuesday at 3 pm I have a piano lesson"."""
    match = _REGULAR.fullmatch(clause.text) if clause.language == "en" else None
    if match is None or clause.hedged:
        return []
    event = canonical(f"{match['day'].removesuffix('s')} {match['event']}")
    value, shown = scheduled(event, match["time"], "en")
    return [Fact("schedule", value, shown, "en", 0.86, clause.start, clause.end, clause.sentence, key=event)]


_AT_WORK = re.compile(
    r"\b(?:at|for|with) (?P<v>(?:the )?[A-Z][\w&.'-]*(?: (?:&|and|of|[A-Z][\w&.'-]*))*)(?= (?:since|for|in|now|on)\b|$)"
)


def workplace(clause: Clause, facts: Sequence[Fact]) -> list[Fact]:
    """Where a job is done, named after it: "I am a paralegal at Moxley & Reed"."""
    if clause.language != "en" or any(f.base == "employer" for f in facts):
        return []
    for job in facts:
        match = _AT_WORK.search(clause.text)
        if job.base == "job" and not job.ends and match and job.object.casefold() not in match["v"].casefold():
            told = job.predicate.removesuffix("job") + "employer"
            return [replace(job, predicate=told, value=canonical(match["v"]), object=match["v"])]
    return []


_NAME = {
    "zh": re.compile(
        "(?:的?(?:名字|小名|大名)(?:叫做|是叫|叫|是)|叫做|叫)(?P<name>[\u4e00-\u9fff]{1,4}|[A-Z][a-z]+)$"
        "|(?P<name2>(?!最近|现在|马上|一直|终于|已经|打算|准备|刚刚|正好|目前|特别|非常|真的|每天|周末|暑假|寒假|以后|之前|也是|都在|明天|今天|昨天"
        "|下周|明年|去年|前年|们|他|她|不|没|在|想|要|会|可能|应该|考|读|上|和|跟|的|很|都|从|给|被|又|还|说|说的|年纪|生日|今年)"
        "(?:[小阿][\u4e00-\u9fff]|(?P<twice>[\u4e00-\u9fff])(?P=twice)|[\u4e00-\u9fff]{2}))"
        "(?=(?:今年|现在|刚|已经|才|快|明年|下个月|马上)*(?:上|读|念|要上)(?:了)?(?:幼儿园|托班|小学|初中|高中|大学|[小中大]班|[一二三四五六]年级)"
        r"|(?:今年|现在|刚满?|已经|才|快)*(?:[一二两三四五六七八九十]{1,3}|\d{1,2})(?:岁|个月))"
    ),
    "en": re.compile(
        r"(?:name is|is called|is named|goes by) (?P<name>[A-Z]\w+)"
        r"|is (?P<name2>(?!(?:\w+(?:ish|ese)|(?:Ameri|Mexi|Afri|Republi)can|(?:Ger|Ro)man|Korean|Dutch|Greek|Welsh"
        r"|Swiss|Thai|Arab|Czech|Asian|Cuban|Muslim|Catholic|Hindu|Buddhist|Sikh|Protestant|Quaker"
        r"|(?:Ital|Austral|Ind|Russ|Canad|Brazil|Ukrain|Norweg|Belg|Austr|Iran|Egypt|Nigerian|Christ)ian"
        r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
        r"|January|February|March|April|May|June|July|August|September|October|November|December)\b)[A-Z][a-z]+)$"
    ),
}


def named(text: str, language: str) -> str:
    """The name that a phrase about a relative gives, or empty: "name is Mia", 「北北今年上幼儿园」."""
    match = _NAME[language].match(text)
    return (match["name"] or match["name2"]) if match else ""

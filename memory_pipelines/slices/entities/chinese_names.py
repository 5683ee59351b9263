"""Chinese people, organisations, addresses and warehouses that no dictionary lists: by rules, and by the words of LAC.

Belongs here: what a name is made of (surname and place, place and 保险, road and number). Does not belong here:
names behind a phrase such as 我叫 (``rules``), the model (``lexical``), the word lists (``entity_names.yaml``).
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from memory_pipelines.slices.entities.dictionary import Dictionary, find_warehouse
from memory_pipelines.slices.entities.lexical import Word, words
from memory_pipelines.slices.entities.rules import COMPANY, NAMED, PERSON, PLACE, Finding, normal_form
from memory_pipelines.slices.resources import read_yaml

_HAN = "\u4e00-\u9fff"
_ROAD_NAME = f"(?:(?![省市区县镇乡寄到送在住去往])[{_HAN}])"
_ADDRESS = re.compile(f"({_ROAD_NAME}{{1,6}}?(?:大道|大街|[路街巷弄]|胡同)\\d{{1,5}}(?:-\\d{{1,4}})?[号弄](?![线楼]))")
_SURNAMES = (  # without those that are common words: 于, 高, 向, 任
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林罗郑梁谢宋唐许韩冯邓曹彭曾萧田董袁潘蒋蔡余杜叶程苏魏吕丁沈姚卢姜崔钟谭陆汪范金廖贾夏韦付方"
    "邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵钱严覃武戴莫孔汤"
)
_NAME_BEGINS = re.compile(f"(?:^|[^{_HAN}]|[和跟找让叫给是与同问]|我是|同事|朋友|同学)$")
_COMPANY_END = re.compile(
    "(?:公司|集团|银行|保险|证券|基金|航空|物流|快递|速运|科技|股份|商城|超市|酒店|餐厅|工厂|厂|店|局|部|院|会|社|台|报|队|协会|俱乐部)$"
)
_FACILITY = re.compile(
    "(?:大学|学院|医院|中学|小学|学校|机场|车站|火车站|宾馆|酒店|饭店|公园|广场|大厦|博物馆|图书馆)$"
)
_GENERIC_ORG = re.compile(
    "(?:官方|快递|物流|保险|搬家|装修|货运|旅游|广告|贸易|外卖|电商|本|我|贵|你们?|我们?|他们|某|一家|这家|那家|该|总|分|子|大|小)*(?:公司|银行|集团|平台|店|部门|中心|网点|站点|驿站|仓库|客服|法院|政府|学校|医院|派出所|警察局|旗舰店|专卖店|实体店|直营店|体验店)"
)
_NO_NAME = re.compile("[哈呢哦呀吧吗啊嘛哒滴了么的呵嗯]$|^(.)\\1+$")  # 处理中哈, 怎么, 旺旺旺
_HAS_HAN = re.compile(f"[{_HAN}]")


@dataclass(frozen=True)
class _Lists:
    company_tails: re.Pattern[str]
    facility_tails: re.Pattern[str]
    speech: re.Pattern[str]
    generic_places: frozenset[str]
    generic_people: frozenset[str]


@cache
def _lists(file: str) -> _Lists:
    source = read_yaml(file)

    def any_of(block: str) -> re.Pattern[str]:
        return re.compile("|".join(sorted(block.split(), key=len, reverse=True)))

    return _Lists(
        company_tails=any_of(source["company_tails"]),
        facility_tails=any_of(source["facility_tails"]),
        speech=any_of(source["speech_zh"]),
        generic_places=frozenset(source["generic_places"].split()),
        generic_people=frozenset(source["generic_people"].split()),
    )


def find_chinese(
    text: str, folded: str, file: str, dictionary: Dictionary, known: Sequence[Finding]
) -> Iterator[Finding]:
    """Findings by rules in a normalised text and its folded form; ``known``: what the dictionary found in it."""
    lists = _lists(file)
    for match in _ADDRESS.finditer(text):
        yield Finding(COMPANY, *match.span(1), "place", f"place/{match[1]}")
    for place in known:
        if place.kind != "place" or not _HAS_HAN.match(text, place.start):
            continue
        person = _named_after(text, place, lists)
        if person:
            yield person
        elif tail := lists.company_tails.match(text, place.end):
            yield _organisation(text, place.start, tail.end(), "company")
        elif tail := lists.facility_tails.match(text, place.end):
            yield _organisation(text, place.start, tail.end(), "place")


def _named_after(text: str, place: Finding, lists: _Lists) -> Finding | None:
    """张北京: a surname at the start of a clause, a place of two characters, and what only people do."""
    start = place.start - 1
    if place.end - place.start != 2 or start < 0 or text[start] not in _SURNAMES:
        return None
    after = text[place.end : place.end + 1]
    if not _NAME_BEGINS.search(text[max(0, start - 4) : start]) or not (
        lists.speech.match(text, place.end) or not after or after in "，。！？,.!?:： "
    ):
        return None
    return Finding(NAMED, start, place.end, "person", f"person/{text[start : place.end]}")


def _organisation(text: str, start: int, end: int, kind: str) -> Finding:
    return Finding(COMPANY, start, end, kind, f"{kind}/{normal_form(text[start:end])}")


def by_lac(text: str, folded: str, file: str, dictionary: Dictionary, known: Sequence[Finding]) -> Iterator[Finding]:
    """Findings by LAC's names: people, organisations, and places, adjacent ones as one."""
    lists = _lists(file)
    inside = sorted((f for f in known if f.kind), key=lambda f: f.start)
    starts = [f.start for f in inside]
    for start, end, tag in _merged(words(text)):
        name = text[start:end]
        if tag not in ("PER", "LOC", "ORG") or not _HAS_HAN.search(name) or end - start < 2 or _NO_NAME.search(name):
            continue
        within = [f for f in inside[bisect_left(starts, start) : bisect_left(starts, end)] if f.end <= end]
        if tag == "PER":
            yield from _lac_person(text, start, end, lists, within)
        elif tag == "LOC":
            yield from _lac_place(text, folded, start, end, lists, dictionary, within)
        elif not _GENERIC_ORG.fullmatch(name) and name.lower() not in dictionary.generic:
            if any(e - s == end - start for s, e, _ in dictionary.names.find(folded[start:end])):
                continue  # a name with an id of its own, or one that the words around spoke against
            kind = "place" if _FACILITY.search(name) else "company"
            found = _organisation(text, start, end, kind)
            yield found if within or _COMPANY_END.search(name) else found._replace(rank=PERSON)


def _merged(found: Sequence[Word]) -> Iterator[Word]:
    """LAC's words with adjacent places joined: it cuts 北京市|朝阳区."""
    last: Word | None = None
    for word in found:
        if last and last.tag == word.tag == "LOC" and last.end == word.start:
            last = last._replace(end=word.end)
            continue
        if last:
            yield last
        last = word
    if last:
        yield last


def _lac_person(text: str, start: int, end: int, lists: _Lists, within: Sequence[Finding]) -> Iterator[Finding]:
    name = text[start:end]
    if name in lists.generic_people or end - start > 8 or any(f.end - f.start == end - start for f in within):
        return
    # 张北京 holds a place and is none; 顺丰小哥 holds a carrier and is one
    holds = [f for f in within if f.kind != "place"]
    if not holds:
        yield Finding(NAMED if within else PERSON, start, end, "person", f"person/{normal_form(name)}")


def _lac_place(
    text: str, folded: str, start: int, end: int, lists: _Lists, dictionary: Dictionary, within: Sequence[Finding]
) -> Iterator[Finding]:
    for cut in range(start + 2, end + 1):  # LAC takes 嘉定仓 as one word, or cuts 嘉定|仓
        stored = list(find_warehouse(folded, start, cut, text[start:cut], dictionary))
        if stored and stored[0].end >= end:
            yield from stored
            break
    if tail := lists.company_tails.match(text, end):
        yield _organisation(text, start, tail.end(), "company")
    # the dictionary's places inside have ids of their own; what is left of the name is a place within them
    taken = {i for f in within for i in range(f.start, f.end)}
    left = start
    for right in range(start, end + 1):
        if right < end and right not in taken:
            continue
        name = text[left:right]
        if right - left > 1 and _HAS_HAN.match(name) and name not in lists.generic_places:
            yield Finding(PLACE, left, right, "place", f"place/{normal_form(name)}")
        left = right + 1

"""What looks like an entity and is something else: postcodes, amounts and house numbers read as orders, people named
after a month or a place, postcodes and parts of words read as places.

Belongs here: reasons to drop a finding of the second revision. Does not belong here: finding something.
"""

import re
from functools import cache

from memory_pipelines.slices.entities.rules import Finding, split_bars
from memory_pipelines.slices.language import fold
from memory_pipelines.slices.resources import Named, label_files, read_yaml

_BEFORE = 24
_POSTCODE = re.compile(
    r"(?:邮编|邮政编码|邮政编号|\bzip(?: ?code)?|\bpost(?:al)? ?code|\bpostcode)[^\w]{0,3}(?:是|为|is)?[^\w]{0,2}$"
)
_STATE = re.compile(r",? ([A-Z]{2}),? $")
_HOUSE = re.compile(
    r"(?:\b(?:apt|apartment|suite|ste|unit|room|flat|floor|building|bldg|box|gate|locker|"
    r"table|line|version|model|page)\.?|门牌号?|房间号?|房号|单元|"
    r"储物柜|柜号|取件码|验证码|座位|桌号|学号|工号|型号|货号|款号) ?(?:号|no\.?|number)?[ :：#]{0,2}#?$"
)
_MONEY_BEFORE = re.compile(
    r"(?:[$￥¥€£]|\b(?:rmb|usd|cny|hkd|eur|gbp)|金额|总价|价值|价格|共计|合计|总计|一共|"
    r"worth|total(?: of| is)?|costs?|paid|"
    r"amount(?: of| is)?|over|about|around|roughly|nearly|almost|超过|大概|大约|约|差不多|至少|最多)[ :：为是了]{0,2}$"
)
_UNIT_AFTER = re.compile(
    r" ?(?:[元块圆万千件个单台箱份瓶双人名次天分斤吨克支张条套把只盒袋包%％折年月]|多[元块件个单]|积分|公斤|"
    r"(?:dollars?|bucks|usd|rmb|yuan|euros?|pounds?|cents?|units?|pieces?|pcs|items?|points?|people|times|days?|hours?|minutes?|"
    r"orders?|customers?|users?|sets?|boxes|box|bottles?|copies|pairs?|packs?|percent|kg|g|ml|l|km|miles?|k)\b|[.,]\d)"
)
_BARE_ORDER = re.compile(r"(?:\b(?:order|package|parcel|shipment|reference|invoice)|订单)[是为:\s]{0,3}$")
_PLURAL_AFTER = re.compile(
    r" (?:[a-z]+ )?(?!is|was|has|this|its|as|always|plus|perhaps|arrives|says|shows)[a-z]{2,}s\b"
)
_CALENDAR = re.compile(r"(?:19|20)\d\d-(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12]\d|3[01])")
_CLOCK_AFTER = re.compile(r"[:：]\d")


def is_mistaken(finding: Finding, text: str, folded: str, model_set: Named) -> bool:
    """Whether what stands around a finding says that it is none."""
    if finding.kind == "order_number":
        return _is_no_order(finding, text, folded)
    if finding.kind == "person":
        return text[finding.start : finding.end].lower() in _not_people(model_set)
    if finding.kind == "company":  # "works at Stanford University": the place has one id, whoever works there
        return text[finding.start : finding.end].rpartition(" ")[2] in _facilities(model_set)
    if finding.kind == "place":
        return _is_no_place(finding, text, folded)
    return False


@cache
def _not_people(model_set: Named) -> frozenset[str]:
    more = read_yaml(label_files(model_set, "entities")["names"])
    return frozenset(fold(name) for name in (*split_bars(more["not_in_names"]), *more["generic_people"].split()))


@cache
def _facilities(model_set: Named) -> frozenset[str]:
    return frozenset(split_bars(read_yaml(label_files(model_set, "entities")["names"])["facility_words"]))


def _is_no_order(finding: Finding, text: str, folded: str) -> bool:
    number = text[finding.start : finding.end]
    before = folded[max(0, finding.start - _BEFORE) : finding.start]
    after = folded[finding.end : finding.end + _BEFORE]
    if _POSTCODE.search(before) or _HOUSE.search(before) or _CALENDAR.fullmatch(number):
        return True
    if is_us_postcode(text, finding.start, finding.end) or _CLOCK_AFTER.match(after):
        return True
    if not number.replace("-", "").isdecimal() or len(number) > 9:
        return False
    if _MONEY_BEFORE.search(before) or _UNIT_AFTER.match(after):
        return True
    return len(number) <= 6 and bool(_BARE_ORDER.search(before) and _PLURAL_AFTER.match(after))


_STATES = (
    " AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR "
    "PA RI SC SD TN TX UT VT VA WA WV WI WY DC "
)


def is_us_postcode(text: str, start: int, end: int) -> bool:
    """``Boston, MA 02134`` and ``MA 02134-1234``."""
    state = _STATE.search(text[max(0, start - 8) : start])
    return bool(state and re.fullmatch(r"\d{5}(?:-\d{4})?", text[start:end]) and f" {state[1]} " in _STATES)


def _is_no_place(finding: Finding, text: str, folded: str) -> bool:
    place = text[finding.start : finding.end]
    if any(char.isdecimal() for char in place) and not re.search("[号弄巷路街]|[A-Za-z]{3}", place):
        return True
    # 北京路, 南京西路: a street elsewhere; its own rule finds it where it has a number
    return len(place) == 2 and bool(re.match("[东西南北中]?[路街](?!过|上|边)", folded[finding.end : finding.end + 3]))

"""Step 1, sensitive fields: phones, ID cards, bank cards, e-mail addresses, passwords and codes in a text.

Belongs here: finding them in cleaned text, Chinese and English, and putting tokens in their place. Does not belong
here: keeping the values (a ``Vault``). A number that is announced as an order or a parcel is none of these, whatever
its digits; one that is announced as a card or a phone need not look like a perfect one.

Every pattern is bounded: the time is linear in the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.model import Owner
from memory_pipelines.stores.vault import TOKEN, Secret, Vault, bare


class Sensitive(NamedTuple):
    """One field: ``text[start:end]``; ``value`` is its normal form, equal however it was written."""

    kind: str
    start: int
    end: int
    value: str


_WORDS = (
    "(?:密|验证|驗證|校验|校驗|动态|動態|短信|安全)[码碼]|密保|口令|安全[问問][题題]|"
    r"pass(?:word|code|phrase|wd)|pwd|\bpin(?:\b|\s?[码碼])|\botp\b|\bcv[vc]2?\b|security question|"
    "(?:verification|security|one[- ]time|login|auth[a-z]{0,12}) ?code"
)
_MAY_HOLD = rf"(?i)[0-9](?:[ .()-]{{0,3}}[0-9]){{6}}|@[a-z0-9]|{_WORDS}"
"""What a text must hold to be looked at: seven digits, an address's sign, or a word of secrets (RE2 and ``re``)."""

# What is said right before a number. The slice that is searched ends at the number.
_BEFORE = 32
_FILLER = r"(?:[\s号碼码:：#=是为為的]|numbers?|no\.?|is|was|id){0,6}"
_ORDER = re.compile(
    r"(?:订单|訂單|运单|運單|单号|單號|编号|編號|快递|快遞|物流|包裹|流水|发票|發票|交易|商品|货号|工单|批次|序列|型号|"
    r"\b(?:order|tracking|invoice|reference|ref|shipment|package|parcel|waybill|ticket|case|transaction|receipt|item|"
    rf"sku|serial|model|awb|po|booking|confirmation)\b){_FILLER}$|[?&](?!phone|mobile|tel)[a-z_]{{1,20}}=$",
    re.I,
)
_CARD = re.compile(
    r"(?:卡号|卡號|银行卡|銀行卡|储蓄卡|信用卡|借记卡|账户|帐户|"
    rf"\b(?:card|visa|mastercard|amex|account)\b){_FILLER}$",
    re.I,
)
_IDENTITY = re.compile(rf"(?:身份证|身份證|证件|證件|\bid(?: card)?|\bidentity card){_FILLER}$", re.I)

_START = r"(?<![0-9A-Za-z_])(?<![0-9][.])(?<![A-Za-z][-/])"
_END = r"(?![0-9A-Za-z_]|\.[0-9])"

_MOBILE = re.compile(
    rf"{_START}(?:(?:\+|00)?86[ -]?)?"
    rf"(1[3-9][0-9](?:[ -]?[0-9]{{4}}){{2}}|1[3-9][0-9]{{2}}[ -][0-9]{{3}}[ -][0-9]{{4}}){_END}"
)
_AREA = "(?:10|2[0-9]|[3-9][0-9]{2})"
_LANDLINE = re.compile(
    rf"{_START}(?:(?:0{_AREA}-|[(（]0{_AREA}[)）][ -]?|0{_AREA} (?=[1-9][0-9]{{6}})|(?:\+|00)86[ -]?0?{_AREA}[ -])"
    rf"[1-9][0-9]{{2,3}}[ -]?[0-9]{{4}}){_END}"
)
_TRUNK = re.compile(rf"{_START}(?:09[0-9]{{2}}-[0-9]{{3}}-[0-9]{{3}}|07[0-9]{{3}}[ -][0-9]{{3}}[ -]?[0-9]{{3}}){_END}")
"""Mobiles of Taiwan and Britain as they are written at home."""
_AMERICAN = re.compile(
    rf"{_START}(?:\+?1[-. ])?(?:\([2-9][0-9]{{2}}\)[ -]?[0-9]{{3}}[-. ]|[2-9][0-9]{{2}}([-.])[0-9]{{3}}\1)"
    rf"[0-9]{{4}}{_END}"
)
_WORLD = re.compile(rf"(?<![0-9A-Za-z_])\+[1-9](?:[ .()-]{{0,2}}[0-9]){{7,14}}{_END}")
_ANNOUNCED_PHONE = re.compile(
    r"(?:电话|電話|手机|手機|座机|座機|联系方式|聯繫方式|传真|微信|"
    r"\b(?:phone|mobile|cell(?:phone)?|tel(?:ephone)?|whats ?app|fax|call me|text me|reach me|ring me)\b)"
    r"(?:[\s号碼码:：#=是为為,，在]|\b(?:numbers?|no\.?|is|was|at|on)\b){0,6}"
    rf"((?:\+|00)?[(（]?[0-9](?:[ .()（）-]{{0,2}}[0-9]){{6,14}}){_END}(?! ?[元块塊¥￥$€%年月日天点])",
    re.I,
)
_DATED = re.compile(r"(?:19|20)[0-9]{2}[-./ ]?(?:0?[1-9]|1[0-2])[-./ ]?(?:0?[1-9]|[12][0-9]|3[01])")
_TOLL_FREE = ("400", "800")
"""Hotlines of companies: nobody's own number."""

_ID_18 = re.compile(
    rf"{_START}[1-8][0-9]{{5}}[ -]?(?:19|20)[0-9]{{2}}(?:0[1-9]|1[0-2])[0-3][0-9][ -]?[0-9]{{3}}[0-9Xx]{_END}"
)
_ID_15 = re.compile(rf"{_START}[1-8][0-9]{{7}}(?:0[1-9]|1[0-2])[0-3][0-9][0-9]{{3}}{_END}")
_PROVINCE = re.compile("1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|71|8[1-3]")
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)

_CARD_NUMBER = re.compile(
    rf"{_START}(?:[0-9]{{13,19}}|[0-9]{{4}}(?:[ -][0-9]{{4}}){{3}}(?:[ -]?[0-9]{{1,3}})?|"
    rf"[0-9]{{4}}[ -][0-9]{{6}}[ -][0-9]{{5}}|[0-9]{{6}}[ -][0-9]{{10,13}}){_END}"
)
_ISSUER = re.compile(
    r"62[0-9]{14,17}|9558[0-9]{15}|4[0-9]{15}|(?:5[1-5]|2[2-7])[0-9]{14}|3[47][0-9]{13}|35[0-9]{14}|6(?:011|4|5)[0-9]{12,13}"
)
"""How cards of the large networks begin, by length; any other must be announced."""

_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9_][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}(?![A-Za-z0-9])"
)

_SECRET_WORD = r"(?:密码|密碼|口令|\bpass(?:word|code|phrase|wd)\b|\bpwd\b)"
_STATED = r"(?:\s?(?:就?是|为|為|[:：=]|改[成为為]|[设設](?:成|[为為]|置[为為])|叫|\bis\b|\bwas\b|\bto\b)\s?){1,2}"
_STATED_LATER = r"[^\n。！？!?]{0,12}?(?:[设設](?:[置定])?|用|改|填|原[来來]|之前|以前|应该|應該)的?是\s?"
_PASSWORD = re.compile(
    rf"{_SECRET_WORD}({_STATED}|{_STATED_LATER}|\s?)[\"'“”‘’「`]?([0-9A-Za-z!@#$%^&*~+][!-~]{{2,63}})", re.I
)
_HINT = re.compile(
    rf"(?:密[码碼]?(?:提示|保护|保護|保)(?:[问問][题題]|[词詞]|[语語])?的?(?:答案)?|安全[问問][题題]的?答案|"
    rf"{_SECRET_WORD} (?:hint|reminder)|\bsecurity question){_STATED}"
    r"([^，。！？；,.!?;\n]{2,60})",
    re.I,
)
_HINT_ZH = re.compile(
    r"密[码碼](?:就?是|[:：])\s?((?:我|俺|咱|我们)?[^，。！？；,.!?;\n]{0,12}"
    r"(?:生日|名字|姓名|拼音|手机号|手機號|电话|電話|门牌号?|门牌號|身份证|身份證|车牌号?|缩写|[后後前][三四六八3468]位)[^，。！？；,.!?;\n吗嗎呢]{0,12})"
    r"(?![，。！？；,.!?;\n]?[吗嗎呢?？])"
)
_HINT_EN = re.compile(
    r"\bpass(?:word|code) is (my (?:[A-Za-z']+ ){0,4}(?:birthday|name|birth date|date of birth|maiden name|anniversary)"
    r"(?: (?:and|plus|followed by) [^,.!?;\n]{1,30})?)",
    re.I,
)
_PIN = re.compile(
    r"\bpin(?:\s?码|\s?碼| ?code| ?number)?(?:\s?(?:是|为|為|[:：=#]|is|was|to)\s?|\s)"
    r"([0-9]{4,8})(?![0-9A-Za-z]|[.-][0-9])",
    re.I,
)
_CODE = re.compile(
    r"(?:(?:验证|驗證|校验|校驗|动态|動態|短信)[码碼]|"
    r"\b(?:verification|security|one[- ]time|login|auth(?:entication|orization)?)"
    r"(?: ?pass)? ?code\b|\botp\b)(?:\s?(?:就?是|为|為|[:：=]|is|was)|\s)?\s?[\"'“「]?"
    r"((?=[A-Za-z-]{0,7}[0-9])[0-9A-Za-z]{4,8}|[0-9]{3}[- ][0-9]{3})(?![0-9A-Za-z]| ?[元块位个个分秒])",
    re.I,
)
_CODE_AFTER = re.compile(
    r"(?<![0-9A-Za-z.-])([0-9]{4,8})(?:\s?(?:是|为|為)[您你我]?的?.{0,6}?(?:验证|驗證|校验|动态)[码碼]|"
    r" is (?:your|the|my) (?:[A-Za-z-]{1,20} ){0,2}(?:code|otp|pin)\b)",
    re.I,
)
_CVV = re.compile(r"(?:\bcv[vc]2?\b|安全[码碼])(?:\s?(?:code|是|为|[:：=#]|is))?\s?([0-9]{3,4})(?![0-9])", re.I)

_NO_PASSWORD = re.compile(
    "wrong|incorrect|not|expired|weak|required|invalid|lost|forgotten|gone|secret|safe|secure|strong|correct|right|fine|"
    "here|there|broken|still|same|unknown|case|never|always|only|also|just|stolen|something|anything|nothing|what|that|"
    "this|okay|good|short|long|hard|easy|difficult|simple|because|error|does|doesn't|isn't|recovery|reset|manager|"
    "protection|change|please|with|login|sign|access|enter|unlock|continue|view|pass|missing|your|mine|yours",
    re.I,
)
_NOT_AFTER_PASSWORD = re.compile(r"\s?[年月日号次位个個天分种種遍回字小]")
_ENDS = re.compile(r"[\"'”’」`]?(?:[.,;!?)\]]+(?:\s|$)| ?(?:\n|$)|[^\x00-\x7f])")
"""What a password of letters alone must stand before: else it is a word of a sentence."""
_TRAILING = ".,;:!?)]}>\"'`~"


def find_sensitive(text: str) -> list[Sensitive]:
    """The sensitive fields of a cleaned text, in order, without overlaps. Tokens that stand there already are left."""
    taken = sorted(match.span() for match in TOKEN.finditer(text)) if "[" in text else []
    found: list[Sensitive] = []
    for field in _candidates(text):
        at = bisect_right(taken, (field.start, field.end))
        free = (at == 0 or taken[at - 1][1] <= field.start) and (at == len(taken) or taken[at][0] >= field.end)
        if free:
            taken.insert(at, (field.start, field.end))
            found.append(field)
    return sorted(found, key=lambda field: field.start)


def _candidates(text: str) -> Iterator[Sensitive]:
    """All fields by rank: what is announced as a secret, addresses, then numbers, the longest kind first."""
    lower = text.lower()
    if any(word in lower for word in ("密", "口令", "安全", "pass", "pwd", "security")):
        yield from _passwords(text)
    yield from _codes(text, lower)
    if "@" in text:
        for match in _EMAIL.finditer(text):
            yield Sensitive("email", *match.span(), match[0].lower())
    yield from _id_cards(text)
    yield from _bank_cards(text)
    yield from _phones(text)


def _passwords(text: str) -> Iterator[Sensitive]:
    for pattern in (_HINT, _HINT_ZH, _HINT_EN):
        for match in pattern.finditer(text):
            yield Sensitive("password", *match.span(1), match[1].strip())
    for match in _PASSWORD.finditer(text):
        value = match[2].rstrip(_TRAILING)
        end = match.start(2) + len(value)
        whole = any(c.isdigit() for c in value) or _ENDS.match(text, end)
        if whole and _is_password(match[1].strip().lower(), value) and not _NOT_AFTER_PASSWORD.match(text, end):
            yield Sensitive("password", match.start(2), end, value)


def _is_password(stated: str, value: str) -> bool:
    """``stated``: how the text says that this is the password; empty where it only stands behind the word."""
    if _NO_PASSWORD.fullmatch(value) or value.startswith(("http:", "https:")):
        return False
    if any(c.isdigit() for c in value):
        return len(value) >= 3 if stated else len(value) >= 4 and value[0].isalnum()
    return stated not in ("", "was", "to") and len(value) >= 4 and not value.endswith(("ed", "ing"))


def _codes(text: str, lower: str) -> Iterator[Sensitive]:
    if "pin" in lower:
        for match in _PIN.finditer(text):
            yield Sensitive("password", *match.span(1), match[1])
    if "码" in text or "碼" in text or "code" in lower or "otp" in lower or "cv" in lower or "pin" in lower:
        for pattern in (_CODE, _CODE_AFTER, _CVV):
            for match in pattern.finditer(text):
                yield Sensitive("code", *match.span(1), re.sub("[ -]", "", match[1]))


def _digits(text: str) -> str:
    return "".join(c for c in text if "0" <= c <= "9")


def _said_before(cue: re.Pattern[str], text: str, start: int) -> bool:
    return cue.search(text[max(0, start - _BEFORE) : start]) is not None


def _id_cards(text: str) -> Iterator[Sensitive]:
    for match in _ID_18.finditer(text):
        number = re.sub("[ -]", "", match[0]).upper()
        if _PROVINCE.match(number) is None or not _is_date(number[6:14]) or _said_before(_ORDER, text, match.start()):
            continue
        if _id_checksum(number) or _said_before(_IDENTITY, text, match.start()):
            yield Sensitive("id_card", *match.span(), number)
    for match in _ID_15.finditer(text):
        number = match[0]
        old = _PROVINCE.match(number) and _is_date("19" + number[6:12])
        if old and _said_before(_IDENTITY, text, match.start()):
            yield Sensitive("id_card", *match.span(), number)


def _id_checksum(number: str) -> bool:
    """GB 11643-1999: the last sign from the seventeen before."""
    total = sum(weight * int(digit) for weight, digit in zip(_WEIGHTS, number, strict=False))
    return "10X98765432"[total % 11] == number[17]


def _is_date(text: str) -> bool:
    try:
        return 1900 <= date(int(text[:4]), int(text[4:6]), int(text[6:])).year <= 2099
    except ValueError:
        return False


def luhn(number: str) -> bool:
    """Whether the last of the digits is the check digit of the others (ISO/IEC 7812)."""
    doubled = (sum(divmod(2 * int(d), 10)) for d in number[-2::-2])
    return (sum(doubled) + sum(int(d) for d in number[-1::-2])) % 10 == 0


def _bank_cards(text: str) -> Iterator[Sensitive]:
    for match in _CARD_NUMBER.finditer(text):
        start, end = match.span()
        if _said_before(_ORDER, text, start):
            continue
        announced = _said_before(_CARD, text, start)
        ends = [end]
        if len(parts := re.split("[ -]", match[0])) == 5:  # a last group may be another number
            ends.append(end - len(parts[-1]) - 1)
        for last in ends:
            number = _digits(text[start:last])
            plausible = _ISSUER.fullmatch(number) is not None and len(set(number)) > 1
            if (plausible and luhn(number)) or (announced and (luhn(number) or plausible)):
                yield Sensitive("bank_card", start, last, number)
                break


def _phones(text: str) -> Iterator[Sensitive]:
    for match in _MOBILE.finditer(text):
        if not _said_before(_ORDER, text, match.start()):
            yield Sensitive("phone", *match.span(), _digits(match[1]))
    if "0" in text or "+" in text:
        for pattern in (_LANDLINE, _TRUNK):
            for match in pattern.finditer(text):
                if not _said_before(_ORDER, text, match.start()):
                    yield Sensitive("phone", *match.span(), _national(match[0]))
    for match in _AMERICAN.finditer(text):
        number = _digits(match[0])[-10:]
        if number[:3] not in _TOLL_FREE and not _said_before(_ORDER, text, match.start()):
            yield Sensitive("phone", *match.span(), number)
    if "+" in text:
        for match in _WORLD.finditer(text):
            number = _national(match[0])
            written = len(_digits(match[0])) >= 10 or " " in match[0] or "-" in match[0]
            if written and not _said_before(_ORDER, text, match.start()):
                yield Sensitive("phone", *match.span(), number)
    for match in _ANNOUNCED_PHONE.finditer(text):
        number = _national(match[1])
        if not _DATED.match(match[1]) and not number.startswith(_TOLL_FREE):
            yield Sensitive("phone", *match.span(1), number)


def _national(written: str) -> str:
    """Digits as they are dialled at home for China and North America, with ``+`` and the country for the rest."""
    digits = _digits(written)
    abroad = written.startswith(("+", "00"))
    if abroad:
        digits = digits.removeprefix("00")
    if abroad and digits.startswith("86") and len(digits) > 10:
        rest = digits[2:]
        return rest if re.fullmatch("1[3-9][0-9]{9}", rest) or rest.startswith("0") else f"0{rest}"
    if len(digits) == 11 and digits[0] == "1" and not re.fullmatch("1[3-9][0-9]{9}", digits):
        return digits[1:]
    if abroad and len(digits) == 11 and digits[0] == "1":
        return digits[1:]
    return f"+{digits}" if abroad else digits


def hide_sensitive(turns: pa.Table, vault: Vault) -> pa.Table:
    """A TURNS table of cleaned rows with tokens for sensitive fields.

    A value is kept for whom the row names. Where a row names nobody, nobody could be asked: it is not kept.
    """
    texts = turns["text"]
    rows = pc.indices_nonzero(pc.match_substring_regex(texts, _MAY_HOLD)).to_pylist()
    if not rows:
        return turns
    said = turns.select(["tenant", "subject", "text"]).take(rows).to_pylist()
    found = [(i, row, fields) for i, row in zip(rows, said, strict=True) if (fields := find_sensitive(row["text"]))]
    if not found:
        return turns
    secrets = {
        Secret(Owner(row["tenant"], row["subject"]), field.kind, field.value)
        for _, row, fields in found
        if row["subject"] is not None
        for field in fields
    }
    kept = vault.keep(secrets) if secrets else {}
    written = texts.to_pylist()
    for i, row, fields in found:
        owner = None if row["subject"] is None else Owner(row["tenant"], row["subject"])
        names = [bare(f.kind) if owner is None else kept[Secret(owner, f.kind, f.value)] for f in fields]
        written[i] = replaced(row["text"], fields, names)
    column = turns.schema.get_field_index("text")
    return turns.set_column(column, turns.schema.field(column), pa.array(written, pa.string()))


def replaced(text: str, fields: Sequence[Sensitive], names: Sequence[str]) -> str:
    """The text with each field replaced by the name beside it; ``fields`` as of ``find_sensitive``."""
    parts: list[str] = []
    at = 0
    for field, name in zip(fields, names, strict=True):
        parts += (text[at : field.start], name)
        at = field.end
    return "".join((*parts, text[at:]))

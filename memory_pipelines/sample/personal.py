"""Personal data that people give away in a chat: made up, valid where a checksum exists.

Belongs here: the numbers. Does not belong here: the sentences around them (YAML), or who says them.

Nothing here can be anybody's. Chinese mobile numbers begin with 160, which no operator has; American
ones are 555-01xx and British ones 07700 900xxx, both reserved for fiction; e-mail addresses end in
example.com, .org or .net (RFC 2606); identity cards name county 99 of a province, which does not
exist; bank cards begin with 400000 (test numbers of payment providers) or 620000 (not assigned).
"""

from random import Random
from typing import NamedTuple

from memory_pipelines.sample.phrases import Phrases, pick

SENSITIVE = ("phone", "email", "id_card", "bank_card", "password", "password_hint")
DECOYS = ("tracking_number", "wrong_card")
"""Numbers that look like personal data and are none: they must stay in the text."""
PROVINCES = (11, 31, 32, 33, 44, 51, 42, 61)
WORDS = ("plum", "kite", "otter", "maple", "comet", "pixel", "tulip", "raven")
NAMES = ("lin.yue", "wei_chen", "mia.hart", "jo.baker", "sam-reed", "xiaotang", "ana.lopez", "t.okafor")


class Planted(NamedTuple):
    """One value in a text, verbatim. ``kind`` is one of ``SENSITIVE`` or ``DECOYS``."""

    kind: str
    value: str

    @property
    def sensitive(self) -> bool:
        return self.kind in SENSITIVE


def plant(rng: Random, phrases: Phrases) -> tuple[str, Planted]:
    """A sentence with one value, and the value; one in eight is a decoy. Needs the wide phrase book."""
    kinds = DECOYS if rng.random() < 0.125 else SENSITIVE
    kind = pick(rng, tuple(kind for kind in kinds if kind in phrases.personal))
    value = pick(rng, phrases.personal["hint"]) if kind == "password_hint" else MAKERS[kind](rng, phrases.language)
    return pick(rng, phrases.personal[kind]).format(value=value), Planted(kind, value)


def luhn_digit(digits: str) -> str:
    """The digit that makes ``digits`` + digit pass the Luhn check (ISO/IEC 7812-1, annex B)."""
    total = 0
    for i, char in enumerate(reversed(digits)):
        number = int(char) * (1 if i % 2 else 2)
        total += number - 9 if number > 9 else number
    return str(-total % 10)


def id_card_digit(digits: str) -> str:
    """The 18th character of a Chinese identity card (GB 11643: ISO 7064 MOD 11-2) for its first 17."""
    total = sum(int(char) * (2 ** (17 - i) % 11) for i, char in enumerate(digits))
    return "10X98765432"[total % 11]


def _digits(rng: Random, count: int) -> str:
    return f"{int(rng.random() * 10**count):0{count}}"


def _phone(rng: Random, language: str) -> str:
    if language != "en":
        rest = _digits(rng, 8)
        return pick(rng, (f"160{rest}", f"160 {rest[:4]} {rest[4:]}", f"160-{rest[:4]}-{rest[4:]}", f"+86 160{rest}"))
    if rng.random() < 0.2:
        return f"07700 900{_digits(rng, 3)}"
    area, last = 201 + int(rng.random() * 700), f"01{_digits(rng, 2)}"
    return pick(rng, (f"({area}) 555-{last}", f"{area}-555-{last}", f"+1 {area} 555 {last}"))


def _email(rng: Random, language: str) -> str:
    return f"{pick(rng, NAMES)}{_digits(rng, 3)}@example.{pick(rng, ('com', 'org', 'net'))}"


def _id_card(rng: Random, language: str) -> str:
    born = f"{1950 + int(rng.random() * 55)}{1 + int(rng.random() * 12):02}{1 + int(rng.random() * 28):02}"
    digits = f"{pick(rng, PROVINCES)}0199{born}{_digits(rng, 3)}"
    return digits + id_card_digit(digits)


def _bank_card(rng: Random, language: str) -> str:
    digits = f"400000{_digits(rng, 9)}" if language == "en" else f"620000{_digits(rng, 12)}"
    digits += luhn_digit(digits)
    if rng.random() < 0.5:
        return digits
    return pick(rng, (" ", "-") if language == "en" else (" ",)).join(
        digits[i : i + 4] for i in range(0, len(digits), 4)
    )


def _password(rng: Random, language: str) -> str:
    return f"{pick(rng, WORDS).title()}{pick(rng, ('-', '_', '!', '#'))}{pick(rng, WORDS)}{_digits(rng, 3)}"


def _tracking_number(rng: Random, language: str) -> str:
    return f"{pick(rng, ('SF', 'YT', 'JD', 'ZT'))}{_digits(rng, 13)}"


def _wrong_card(rng: Random, language: str) -> str:
    digits = f"400000{_digits(rng, 9)}"
    return digits + str((int(luhn_digit(digits)) + 1 + int(rng.random() * 9)) % 10)


MAKERS = {
    "phone": _phone,
    "email": _email,
    "id_card": _id_card,
    "bank_card": _bank_card,
    "password": _password,
    "tracking_number": _tracking_number,
    "wrong_card": _wrong_card,
}

"""The package data of admission, read once and typed: predicates, patterns, cues, scenario profiles.

Belongs here: loading and compiling what ``data/*.yaml`` says. Does not belong here: applying it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from memory_pipelines.errors import SettingError

LANGUAGES = ("zh", "en")
FAMILY = "family."


@dataclass(frozen=True, slots=True)
class Predicate:
    """One predicate of the ontology; ``persistence``, ``core`` and ``use`` in [0, 1]."""

    name: str
    category: str
    cardinality: str
    permanence: str
    persistence: float
    core: float
    use: float
    templates: Mapping[str, str]
    opposite: str = ""

    @property
    def remembers_end(self) -> bool:
        """Whether an ending tells something where nothing was known: "I no longer live in Paris" does, "I am not
        allergic to cats" does not."""
        return self.category not in ("health", "order") and self.name not in ("name", "language", "birthday")


@dataclass(frozen=True, slots=True)
class Pattern:
    """One compiled pattern, as the head of ``data/patterns.yaml`` tells. ``strength`` in [0, 1] is how surely a match
    states the fact; ``fixed`` is its ``object``, ``ends`` its ``end``."""

    predicate: str
    regex: re.Pattern[str]
    strength: float
    fixed: str = ""
    prefix: str = ""
    also: str = ""
    after: str = ""
    ends: bool = False
    raw: bool = False
    dated: bool = False
    explicit: bool = False
    affirm: bool = False
    later: bool = False
    anytime: bool = False
    unless: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A scenario: weights of (persistence, structure, personalisation), thresholds, rules, wording."""

    name: str
    version: int
    weights: tuple[float, float, float]
    long: float
    short: float
    small_talk: bool
    arm_b_long: float
    who: Mapping[str, str]
    arm_b_share: float = 0.0

    @property
    def label(self) -> str:
        """``<name>@<version>``: what decisions record."""
        return f"{self.name}@{self.version}"


def package_data(name: str) -> dict[str, Any]:
    """What a YAML file of ``data`` holds."""
    text = resources.files("memory_pipelines.admission").joinpath("data", name).read_text("utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded


def alternatives(words: Sequence[str]) -> str:
    """The words as one alternation, longest first."""
    return "|".join(sorted(words, key=lambda w: (-len(w), w)))


@cache
def profile(scenario: str) -> Profile:
    """The named scenario profile. Raises SettingError for an unknown one."""
    known = package_data("scenarios.yaml")["profiles"]
    if scenario not in known:
        raise SettingError(f"MEMORY_PIPELINES_SCENARIO must be one of {', '.join(sorted(known))}")
    row = known[scenario]
    return Profile(
        name=scenario,
        version=row["version"],
        weights=tuple(row["weights"]),
        long=row["long"],
        short=row["short"],
        small_talk=row["small_talk"],
        arm_b_long=row["arm_b"]["long"],
        who=row["who"],
    )


@cache
def predicates() -> Mapping[str, Predicate]:
    rows = package_data("predicates.yaml")["predicates"]
    texts = ("zh", "zh_ended", "en", "en_ended")
    also = ("en_thing", "en_ended_thing")
    return {
        name: Predicate(
            name=name,
            templates={t: row[t] for t in texts} | {t: row[t] for t in also if t in row},
            **{k: v for k, v in row.items() if k not in texts + also},
        )
        for name, row in rows.items()
    }


def predicate(name: str) -> Predicate:
    """The ontology's entry of a predicate; ``family.<relation>.<base>`` has that of its base, but for names: a person
    has one name, and as many sons as there are names of sons."""
    base = name.rsplit(".", 1)[-1]
    return predicates()["relative_name" if base == "name" and name.startswith(FAMILY) else base]


@cache
def relations() -> Mapping[str, Mapping[str, str]]:
    """Canonical relation → its surface forms (``zh``, ``en``: alternations) and ``zh_name``."""
    loaded: Mapping[str, Mapping[str, str]] = package_data("predicates.yaml")["relations"]
    return loaded


@cache
def relation_of() -> Mapping[str, str]:
    """Surface form → canonical relation, in both languages."""
    return {form: name for name, row in relations().items() for lang in LANGUAGES for form in row[lang].split("|")}


@cache
def aliases() -> Mapping[str, str]:
    """Value in either language → canonical value."""
    return {form: row[0] for row in package_data("predicates.yaml")["values"] for form in row}


@cache
def _places() -> tuple[frozenset[str], re.Pattern[str]]:
    data = package_data("predicates.yaml")
    return frozenset(data["cities"]), re.compile(f"(?:(?:{alternatives(data['regions'])})[省市]?)+")


def is_place(value: str) -> bool:
    """Whether a canonical value is a city or region, such as 江苏南京."""
    cities, regions = _places()
    return value in cities or regions.fullmatch(value) is not None


@cache
def cues() -> Mapping[str, Any]:
    return package_data("cues.yaml")


@cache
def phrases() -> Mapping[str, Any]:
    return package_data("phrases.yaml")


@cache
def cue(language: str, name: str) -> re.Pattern[str]:
    """One list of cue words as a pattern: whole words in English, anywhere in Chinese."""
    body = alternatives(cues()[language][name])
    return re.compile(body if language == "zh" else rf"\b(?:{body})\b", re.I)


def has_cue(name: str, text: str) -> bool:
    """Whether a text has one of the cue words, in either language."""
    return cue("zh", name).search(text) is not None or cue("en", name).search(text) is not None


@cache
def value_lists(language: str) -> tuple[frozenset[str], tuple[str, ...], frozenset[str]]:
    """(values that name nothing, beginnings that disqualify a value, definite things that are tastes)."""
    data = package_data("patterns.yaml")
    lists = data["empty_values"][language], data["bad_starts"][language]
    return frozenset(lists[0]), tuple(lists[1]), frozenset(data["generic_definites"])


@cache
def loose(language: str, kind: str) -> tuple[tuple[str, re.Pattern[str], float], ...]:
    """(predicate, pattern, strength) of what a question takes for granted (``presupposed``), or what is said of the
    speaker ``anywhere`` in a clause; ``v`` is the value, ``rel`` whose it is."""
    data = package_data("patterns.yaml")
    macros = _macros(data)
    return tuple(
        (row["p"], re.compile(_expanded(row["re"], macros), 0 if language == "zh" else re.I), row["s"])
        for row in data[kind][language]
    )


@cache
def openings(language: str) -> tuple[re.Pattern[str], ...]:
    """Patterns of clauses that say what there is now, or from now on; ``v`` is the value."""
    return tuple(re.compile(source, re.I) for source in package_data("patterns.yaml")["openings"][language])


@dataclass(frozen=True, slots=True)
class Frame:
    """A way of saying: what ``regex`` finds is told by the sentence ``to``, which names its groups.

    ``beside``: whatever else the clause states; ``others``: also where it speaks of another person."""

    regex: re.Pattern[str]
    to: str
    beside: bool
    others: bool


@cache
def frames(language: str) -> tuple[Frame, ...]:
    """The frames of one language, as ``data/patterns.yaml`` tells."""
    data = package_data("patterns.yaml")
    macros, flags = _macros(data), 0 if language == "zh" else re.I
    return tuple(
        Frame(
            re.compile(_expanded(row["re"], macros), flags),
            row["to"],
            row.get("beside", False),
            row.get("others", False),
        )
        for row in data["plain"][language]
    )


@cache
def any_frame(language: str) -> re.Pattern[str]:
    """What any of ``frames`` finds."""
    return _any_of(frame.regex for frame in frames(language))


@cache
def questions(language: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """(predicate, pattern of a question that asks for it), in order of preference."""
    rows = package_data("patterns.yaml")["questions"][language]
    return tuple((name, re.compile(source, re.I)) for name, source in rows.items())


@cache
def labels(language: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """(predicate, pattern of a clause that is but the name of a thing to be filled in)."""
    return tuple(
        (name, re.compile(source, re.I)) for name, source in package_data("patterns.yaml")["labels"][language].items()
    )


def _any_of(patterns_: Iterable[re.Pattern[str]]) -> re.Pattern[str]:
    """One pattern that matches where any of them does: what holds nothing is told in one step.

    Its only groups are the patterns in order: ``lastindex`` - 1 is the place of the first that matches."""
    bodies = []
    for pattern in patterns_:
        source = re.sub(r"\(\?P<\w+>", "(?:", pattern.pattern)
        bodies.append(f"((?i:{source}))" if pattern.flags & re.I else f"({source})")
    return re.compile("|".join(bodies))


@dataclass(frozen=True, slots=True)
class Patterns:
    """Patterns in order of preference, and what any of them matches (``_any_of``)."""

    each: tuple[Pattern, ...]
    any: re.Pattern[str]

    def matches(self, text: str) -> Iterator[tuple[Pattern, re.Match[str]]]:
        """The patterns that match at the start of ``text``, and how."""
        found = self.any.match(text)
        if found is None or found.lastindex is None:
            return
        for pattern in self.each[found.lastindex - 1 :]:
            if match := pattern.regex.match(text):
                yield pattern, match


def _together(each: Iterable[Pattern]) -> Patterns:
    chosen = tuple(each)
    return Patterns(chosen, _any_of(pattern.regex for pattern in chosen))


@cache
def usable_patterns(language: str, mode: str, dated: bool) -> Patterns:
    """The patterns of ``patterns`` that are tried on a phrase without its date; those that need one if ``dated``.

    Hardly a phrase matches any of the undated ones, while most match a dated one."""
    return _together(p for p in patterns(language, mode) if not p.raw and (dated or not p.dated))


@cache
def raw_patterns(language: str) -> Patterns:
    """The patterns that are tried before dates are taken off."""
    return _together(p for p in patterns(language, "noun") if p.raw)


@cache
def any_loose(language: str, kind: str) -> re.Pattern[str]:
    """What any of ``loose`` finds."""
    return _any_of(pattern for _, pattern, _ in loose(language, kind))


def _macros(data: Mapping[str, Any]) -> dict[str, str]:
    macros = dict(data["macros"])
    for lang in LANGUAGES:
        forms = [form for row in relations().values() for form in row[lang].split("|")]
        macros[f"{lang}_relation"] = alternatives(forms)
    return macros


def _expanded(source: str, macros: Mapping[str, str]) -> str:
    for name, body in macros.items():
        source = source.replace(f"<{name}>", f"(?:{body})")
    return source


@cache
def patterns(language: str, mode: str) -> tuple[Pattern, ...]:
    """The patterns of one language and mode (``verb`` or ``noun``), in order of preference."""
    data = package_data("patterns.yaml")
    macros = _macros(data)
    made = []
    for row in data[language][mode]:
        source = _expanded(row["re"], macros)
        cased = row.get("cased") or language == "zh"
        unless = row.get("unless")
        made.append(
            Pattern(
                predicate=row["p"],
                regex=re.compile(source, 0 if cased else re.I),
                strength=row["s"],
                fixed=row.get("object", ""),
                prefix=row.get("prefix", ""),
                also=row.get("also", ""),
                after=row.get("after", ""),
                ends=row.get("end", False),
                raw=row.get("raw", False),
                dated=row.get("dated", False),
                explicit=row.get("explicit", False),
                affirm=row.get("affirm", False),
                later=row.get("later", False),
                anytime=row.get("anytime", False),
                unless=re.compile(unless, re.I) if unless else None,
            )
        )
    return tuple(made)

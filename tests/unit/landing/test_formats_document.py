"""docs/formats.md says what is so."""

import re
from pathlib import Path

from memory_pipelines.landing.mapping import FORMATS, NO_MAPPING, TARGETS, TIME_NAMES, parse_mapping
from memory_pipelines.landing.readers import _OF_READERS

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "formats.md").read_text("utf-8")


def named(heading: str) -> set[str]:
    """What the first column of the table under a heading names."""
    section = DOCUMENT.split(f"\n# {heading}\n" if heading == "Formats" else f"\n## {heading}\n", 1)[-1].split("\n## ")[
        0
    ]
    return {name for row in re.findall(r"^\| (`.*?) \|", section, re.M) for name in re.findall(r"`(\w+)`", row)}


def test_every_format_is_there() -> None:
    assert named("Formats") == set(FORMATS)


def test_every_field_is_there() -> None:
    assert named("Fields of a row") == TARGETS | set(TIME_NAMES)


def test_every_reason_of_the_readers_is_there() -> None:
    assert named("Reasons for quarantine") >= _OF_READERS


def test_every_mapping_is_good() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.S)
    mappings = [parse_mapping(example) for example in examples]
    assert len(mappings) == 5
    used = {key for mapping in mappings for key, value in vars(mapping).items() if value != vars(NO_MAPPING).get(key)}
    assert used >= set(NO_MAPPING.__dataclass_fields__)

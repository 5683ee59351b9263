"""A store in another format is refused, not misread."""

import pytest

from memory_pipelines.errors import IntegrityError
from memory_pipelines.stores import database, formats, schema


def test_formats_are_noted_once_and_compared_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = database.connect("sqlite://")
    formats.fix(engine)
    formats.fix(engine)
    monkeypatch.setitem(formats.FORMATS, "graph", 2)
    with pytest.raises(IntegrityError, match="the graph store has format 1, this version writes 2"):
        formats.fix(engine)


def test_a_store_that_only_a_later_version_knows_is_refused() -> None:
    engine = database.connect("sqlite://")
    with engine.begin() as connection:
        connection.execute(schema.counters.insert().values(name="format.other", value=1))
    with pytest.raises(IntegrityError, match="the other store has format 1"):
        formats.fix(engine)

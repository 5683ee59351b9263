"""The model registry: what is kept, which model is in use, and the way back."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from memory_pipelines.errors import IntegrityError, PermanentError
from memory_pipelines.model import stable_hash
from memory_pipelines.stores import schema
from memory_pipelines.stores.registry import ModelRegistry, ModelRow

AT = datetime(2024, 7, 1, 3, tzinfo=UTC)


def model(body: str, kind: str = "reward", **fields: Any) -> ModelRow:
    values: dict[str, Any] = {
        "model_id": stable_hash(body),
        "kind": kind,
        "created_at": AT,
        "data_from": AT - timedelta(days=90),
        "data_to": AT,
        "data_hash": stable_hash("data"),
        "rows": 1234,
        "metrics": {"auc": 0.61, "intents": {"praise": {"auc": None}}},
        "verdict": "first champion",
        "body": body,
    }
    return ModelRow(**(values | fields))


A, B, C = (
    model("a"),
    model("b", created_at=AT + timedelta(days=90)),
    model("模型 c", created_at=AT + timedelta(days=180)),
)


def at(days: int) -> datetime:
    return AT + timedelta(days=days)


@pytest.fixture
def registry(engine: sa.Engine) -> ModelRegistry:
    return ModelRegistry(engine)


@pytest.fixture
def full(registry: ModelRegistry) -> ModelRegistry:
    """A, B and C, promoted one after the other."""
    for days, row in enumerate((A, B, C)):
        registry.add(row)
        registry.promote("reward", row.model_id, at(days), "better")
    return registry


def history(engine: sa.Engine) -> list[tuple[str, str]]:
    table = schema.promotions
    with engine.connect() as connection:
        rows = connection.execute(sa.select(table.c.model_id, table.c.reason).order_by(table.c.promotion_id)).all()
    return [(row[0], row[1]) for row in rows]


def champion(registry: ModelRegistry) -> str:
    found = registry.champion("reward")
    assert found is not None
    return found.model_id


def test_an_empty_registry_has_no_champion(registry: ModelRegistry) -> None:
    assert registry.champion("reward") is None
    assert registry.rows("reward") == []


def test_a_row_comes_back_as_it_went(registry: ModelRegistry) -> None:
    big = model("树" * 100_000)
    registry.add(big)
    assert registry.rows("reward") == [big]
    assert registry.champion("reward") is None  # kept, not in use
    registry.promote("reward", big.model_id, AT, "first")
    assert registry.champion("reward") == big


def test_rows_are_newest_first_and_by_kind(full: ModelRegistry) -> None:
    full.add(model("x", kind="intent"))
    assert full.rows("reward") == [C, B, A]
    assert [row.body for row in full.rows("intent")] == ["x"]
    assert full.champion("intent") is None


def test_a_model_is_found_by_the_beginning_of_its_id(full: ModelRegistry) -> None:
    assert full.beginning("reward", B.model_id[:12]) == [B]
    assert full.beginning("reward", B.model_id) == [B]
    assert {row.model_id for row in full.beginning("reward", "")} == {A.model_id, B.model_id, C.model_id}
    assert full.beginning("intent", B.model_id[:12]) == full.beginning("reward", "%") == []


def test_adding_again_changes_nothing(registry: ModelRegistry) -> None:
    registry.add(A)
    registry.add(model("a", verdict="another"))
    assert registry.rows("reward") == [A]


def test_an_id_that_is_not_the_hash_of_the_body_is_refused(registry: ModelRegistry) -> None:
    with pytest.raises(IntegrityError, match="not the hash"):
        registry.add(model("a", model_id=stable_hash("b")))
    assert registry.rows("reward") == []


def test_a_changed_body_never_comes_into_use(full: ModelRegistry, engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(schema.models.update().where(schema.models.c.model_id == C.model_id).values(body="changed"))
    with pytest.raises(IntegrityError, match=C.model_id):
        full.champion("reward")


def test_the_newest_promotion_is_the_champion(full: ModelRegistry, engine: sa.Engine) -> None:
    assert champion(full) == C.model_id
    assert history(engine) == [(row.model_id, "better") for row in (A, B, C)]


def test_promoting_the_champion_again_notes_nothing(full: ModelRegistry, engine: sa.Engine) -> None:
    full.promote("reward", C.model_id, at(9), "again")
    assert len(history(engine)) == 3


def test_only_a_registered_model_of_the_kind_is_promoted(full: ModelRegistry) -> None:
    for kind, model_id in (("reward", stable_hash("nobody")), ("intent", A.model_id)):
        with pytest.raises(PermanentError, match="no model"):
            full.promote(kind, model_id, at(9), "why")
    assert champion(full) == C.model_id


def test_rolling_back_goes_one_further_each_time(full: ModelRegistry, engine: sa.Engine) -> None:
    assert full.roll_back("reward", at(10)) == B.model_id
    assert champion(full) == B.model_id
    assert full.roll_back("reward", at(11)) == A.model_id
    assert champion(full) == A.model_id
    with pytest.raises(PermanentError, match="no earlier model"):
        full.roll_back("reward", at(12))
    assert [model_id for model_id, _ in history(engine)] == [row.model_id for row in (A, B, C, B, A)]
    newest, before = full.promotions("reward", 2)
    assert (newest.model_id, newest.at) == (A.model_id, at(11))
    assert newest.reason.startswith("rolled back at ")
    assert before.model_id == B.model_id
    assert full.promotions("intent", 2) == []


def test_a_repeated_roll_back_is_one(full: ModelRegistry, engine: sa.Engine) -> None:
    for _ in range(3):
        assert full.roll_back("reward", at(10)) == B.model_id
    assert len(history(engine)) == 4


def test_after_a_roll_back_a_new_model_follows_the_old_one(full: ModelRegistry) -> None:
    full.roll_back("reward", at(10))
    full.promote("reward", C.model_id, at(11), "after all")
    assert champion(full) == C.model_id
    assert full.roll_back("reward", at(12)) == B.model_id


def test_one_kind_does_not_roll_back_another(full: ModelRegistry) -> None:
    with pytest.raises(PermanentError, match="kind intent"):
        full.roll_back("intent", at(10))
    assert champion(full) == C.model_id

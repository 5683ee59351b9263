"""Every setting, read from the environment when ``Settings.load()`` is called, never at import.

Belongs here: names, defaults, documentation and parsing. Does not belong here: what a setting
does. ``docs/settings.md`` is checked against this module by a test.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from memory_pipelines.errors import SettingError

PREFIX = "MEMORY_PIPELINES_"
_PARSE: dict[str, Callable[[str], Any]] = {"str": str, "int": int, "float": float}


def _setting(default: Any, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True)
class Settings:
    """A frozen snapshot of the settings. An empty store URL means: the embedded server."""

    home: str = _setting(".memory_pipelines", "folder of all local state: embedded servers, lake, logs")
    inbox: str = _setting("", "folder of logs to import; default `<home>/inbox`")
    lake_url: str = _setting("", "Delta lake: a folder or `s3://bucket/prefix`; default `<home>/lake`")
    postgres_url: str = _setting("", "`postgresql+psycopg://user:password@host:port/database`")
    neo4j_url: str = _setting("", "`bolt://host:port` or `neo4j+s://host:port`")
    neo4j_user: str = _setting("neo4j", "user of the graph store")
    neo4j_password: str = _setting("", "password of the graph store")
    neo4j_database: str = _setting("neo4j", "database of the graph store")
    milvus_url: str = _setting("", "`http://host:port` of the vector store")
    milvus_token: str = _setting("", "`user:password` or API key of the vector store")
    redis_url: str = _setting("", "`redis://host:port/0` of the hot store")
    s3_url: str = _setting(
        "",
        "endpoint of the cold store and of `s3://` sources, `http(s)://host:port`; "
        "empty: embedded server for the store, AWS itself for sources",
    )
    s3_bucket: str = _setting("memory-pipelines", "bucket of the cold store")
    s3_access_key: str = _setting(
        "", "access key of the cold store and of `s3://` sources; empty: the standard chain of AWS"
    )
    s3_secret_key: str = _setting("", "secret key that belongs to the access key")
    s3_region: str = _setting("us-east-1", "region of the cold store and of `s3://` sources")
    ca_file: str = _setting(
        "", "PEM file of the authority that signed the stores' certificates; empty: the system's; see docs/stores.md"
    )
    tenant: str = _setting("default", "tenant of logs that name none")
    buckets: int = _setting(8, "buckets of subjects for derived tables; fixed once a lake exists")
    scenario: str = _setting("customer_service", "admission profile: customer_service, assistant or entertainment")
    arm_b_share: float = _setting(
        0.0, "share of subjects in arm B of the admission experiment, which keeps from .65 on; see docs/admission.md"
    )
    model_set: str = _setting("base-2", "named set of labelling models, pinned for a backfill; see docs/models.md")
    embedder: str = _setting(
        "use", "embedding model: `use`, `e5`, `e5+use`, `onnx:FOLDER`, `openai:MODEL` or `hash`; see docs/models.md"
    )
    profile: str = _setting("assistant", "life profile of memories: assistant or commerce")
    quarantine_max_share: float = _setting(0.2, "share of quarantined rows of a file above which its check fails")
    token_budget: int = _setting(1500, "tokens that one recall may fill")
    pack_bytes: int = _setting(
        33_554_432, "bytes that a person's pack may have; what does not fit is read from the stores; 0: no packs"
    )
    deadline_relational: float = _setting(2.0, "seconds that a recall waits for one answer of the relational store")
    deadline_vector: float = _setting(2.0, "the same for the dense leg: embedding the query, and the vector store")
    deadline_graph: float = _setting(2.0, "the same for the graph store")
    deadline_hot: float = _setting(1.0, "the same for the hot store")
    deadline_cold: float = _setting(2.0, "the same for the cold store")
    deadline_first: float = _setting(
        15.0, "the same for each store's first answer in a process, while models are loaded and connections opened"
    )
    certificate_secret: str = _setting("", "secret that signs erasure certificates; default: `<home>/certificate.key`")
    master_key: str = _setting(
        "", "base64 of 32 random bytes or more: wraps the keys that sensitive fields are encrypted with"
    )
    master_key_file: str = _setting(
        "", "file that holds the master key; default: `<home>/master.key`, made on first use"
    )
    llm_url: str = _setting(
        "", "OpenAI-compatible endpoint, `http(s)://host:port/v1`; empty: no language model is asked"
    )
    llm_model: str = _setting("", "name of the language model")
    llm_api_key: str = _setting("", "API key of the language model")
    llm_max_tokens_per_run: int = _setting(200_000, "tokens, in and out, that one run may use")
    llm_max_cost_per_run: float = _setting(
        0.0, "money that one run may cost, in the currency of the prices; 0: no limit"
    )
    llm_price_per_1k_in: float = _setting(0.0, "price of 1,000 tokens of a prompt")
    llm_price_per_1k_out: float = _setting(0.0, "price of 1,000 tokens of a reply")

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Self:
        """Read ``MEMORY_PIPELINES_*``; ``overrides`` win. Unknown names and bad values raise SettingError."""
        environ = os.environ if environ is None else environ
        known = {f.name: f for f in fields(cls)}
        values: dict[str, Any] = {}
        for name, raw in environ.items():
            if not name.startswith(PREFIX):
                continue
            key = name.removeprefix(PREFIX).lower()
            if key not in known:
                raise SettingError(f"{name} is no setting; see docs/settings.md")
            kind = type(known[key].default).__name__
            try:
                values[key] = _PARSE[kind](raw)
            except ValueError:
                raise SettingError(f"{name} must be {kind}") from None
        return cls(**(values | overrides))

    def __post_init__(self) -> None:
        if not self.home:
            raise SettingError(f"{PREFIX}HOME must name a folder")
        if self.token_budget < 1:
            raise SettingError(f"{PREFIX}TOKEN_BUDGET must be 1 or more")
        if self.pack_bytes < 0:
            raise SettingError(f"{PREFIX}PACK_BYTES must be 0 or more")
        if not 1 <= self.buckets <= 4096:
            raise SettingError(f"{PREFIX}BUCKETS must be 1 to 4096")
        for name in ("relational", "vector", "graph", "hot", "cold", "first"):
            if not 0 < getattr(self, f"deadline_{name}") < float("inf"):
                raise SettingError(f"{PREFIX}DEADLINE_{name.upper()} must be more than 0")
        for name in ("quarantine_max_share", "arm_b_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingError(f"{PREFIX}{name.upper()} must be in [0, 1]")
        for name in ("max_tokens_per_run", "max_cost_per_run", "price_per_1k_in", "price_per_1k_out"):
            if not 0 <= getattr(self, f"llm_{name}") < float("inf"):
                raise SettingError(f"{PREFIX}LLM_{name.upper()} must be 0 or more")

    @property
    def home_path(self) -> Path:
        return Path(self.home).expanduser().absolute()

    @property
    def inbox_path(self) -> Path:
        return Path(self.inbox).expanduser().absolute() if self.inbox else self.home_path / "inbox"

    @property
    def lake_location(self) -> str:
        return self.lake_url or str(self.home_path / "lake")


def documented() -> list[tuple[str, str, str]]:
    """``(environment variable, default, meaning)`` of every setting, for docs and ``doctor``."""
    return [(PREFIX + f.name.upper(), str(f.default), f.metadata["doc"]) for f in fields(Settings)]

"""Where stores without a URL are served: by embedded servers, one for each.

Belongs here: settings filled in with the URLs of embedded servers. Does not belong here: running them (``local``),
adapters (``wiring``).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from memory_pipelines.errors import SettingError
from memory_pipelines.settings import PREFIX, Settings

EMBEDDED = {
    "postgres": "postgres_url",
    "arcadedb": "neo4j_url",
    "milvus": "milvus_url",
    "valkey": "redis_url",
    "ministack": "s3_url",
}
"""Embedded server → the setting that names a real one instead."""


def with_endpoints(settings: Settings, progress: Callable[[str], None] | None = None) -> Settings:
    """The settings with every empty store URL filled in by an embedded server."""
    needed = [server for server, name in EMBEDDED.items() if not getattr(settings, name)]
    if not needed:
        return settings
    try:
        import memory_pipelines.local  # noqa: F401
    except ImportError:
        names = ", ".join(PREFIX + EMBEDDED[server].upper() for server in needed)
        raise SettingError(f"set {names}, or install memory-pipelines[local] for embedded servers") from None
    return replace(settings, **_found(settings, needed, progress))


def _found(settings: Settings, servers: list[str], progress: Callable[[str], None] | None) -> dict[str, Any]:
    """Where embedded servers answer, as settings; those that do not run are started."""
    from memory_pipelines import local

    found = local.up(settings.home_path, only=servers, progress=progress).settings()
    groups = tuple(EMBEDDED[server].removesuffix("url") for server in servers)
    return {name: value for name, value in found.items() if name.startswith(groups)}


def with_running(settings: Settings) -> Settings:
    """The settings with the URLs of those embedded servers that run now; none is started."""
    needed = [server for server, name in EMBEDDED.items() if not getattr(settings, name)]
    try:
        from memory_pipelines import local
    except ImportError:
        return settings
    running = [server.name for server in local.status(settings.home_path) if server.running and server.name in needed]
    return replace(settings, **_found(settings, running, None)) if running else settings

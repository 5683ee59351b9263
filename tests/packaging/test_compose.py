"""The composed services: what may be said of them without an engine to run them."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from memory_pipelines.settings import Settings

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
STORES = {"postgres", "neo4j", "milvus", "valkey", "s3"}
DAGSTER = {"webserver", "daemon", "code"}


def example() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_is_watched_bounded_and_comes_back(name: str) -> None:
    service = SERVICES[name]
    assert service["healthcheck"]["test"]
    assert service["mem_limit"]
    assert service["restart"] == "unless-stopped"
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service["image"].endswith(":latest")


@pytest.mark.parametrize("name", sorted(STORES))
def test_what_a_store_holds_outlives_its_container(name: str) -> None:
    assert any(volume.startswith(f"{name}:") for volume in SERVICES[name]["volumes"])


def test_only_the_login_is_published_and_on_this_machine_alone() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert list(published) == ["login"]
    assert all(port.startswith("127.0.0.1:") for port in published["login"])


def test_every_name_is_in_the_example_and_none_has_a_default_but_paths() -> None:
    asked = set(re.findall(r"\$\{(\w+)", TEXT))
    assert asked == set(example())
    assert set(re.findall(r"\$\{(\w+):-", TEXT)) == {"LOGS"}


def test_only_the_code_location_knows_the_stores() -> None:
    names = {name: [key for key in SERVICES[name]["environment"] if "MEMORY_PIPELINES" in key] for name in DAGSTER}
    assert names["webserver"] == names["daemon"] == []
    known = {f"MEMORY_PIPELINES_{field.upper()}" for field in Settings.__dataclass_fields__}
    assert set(names["code"]) <= known
    assert set(SERVICES["code"]["depends_on"]) == STORES
    workspace = yaml.safe_load((ROOT / "deploy/docker/workspace.yaml").read_text())
    (location,) = workspace["load_from"]
    assert f"--port {location['grpc_server']['port']}" in SERVICES[location["grpc_server"]["host"]]["command"]


def test_the_image_holds_what_its_commands_name() -> None:
    recipe = (ROOT / "deploy/docker/Dockerfile").read_text()
    copied = {Path(name) for line in recipe.splitlines() if line.startswith("COPY ") for name in line.split()[1:-1]}
    for name in DAGSTER:
        for path in re.findall(r"[\w/]+\.(?:yaml|py)", SERVICES[name]["command"]):
            assert (ROOT / path).is_file()
            assert {Path(path), *Path(path).parents} & copied, path
    assert "USER memory" in recipe
    own = recipe[recipe.index("chown memory") :].splitlines()[0].split()
    mounted = {volume.split(":")[1] for name in DAGSTER for volume in SERVICES[name]["volumes"] if volume[0].isalpha()}
    assert {Path(path).name for path in mounted} <= set(own)

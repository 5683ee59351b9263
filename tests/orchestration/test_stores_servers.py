"""Comparison, rebuild, another embedding model, backup and restore on embedded servers, through the command line."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pipeline_world import NOW, WEEKS, House

from memory_pipelines.cli import main
from memory_pipelines.clock import FixedClock
from memory_pipelines.pipeline import agreement, forget, rebuild, reembed
from memory_pipelines.wiring import connect

pytestmark = [pytest.mark.embedded, pytest.mark.slow]


def test_a_home_is_kept_whole(
    house: House, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    house.reset(WEEKS)
    with house.instance() as instance:
        house.main_job(instance)
    with house.platform() as platform:
        before = {store: rebuild.content(platform, store) for store in rebuild.STORES}
        owners = platform.authority.owners()
        person = max(owners, key=lambda o: (len(platform.authority.visible(o)), o.key))
        entry, _ = min(platform.vectors.entries())
        anchor = next(
            m.memory_id for m in platform.authority.visible(person) if m.tier != "cold" and "graph" in m.stores
        )
    assert main(["stores", "check"]) == 0
    assert main(["ripple", anchor, "--tenant", person.tenant, "--subject", person.subject]) == 0
    assert anchor in capsys.readouterr().out
    assert main(["ripple", "unknown", "--tenant", person.tenant, "--subject", person.subject]) == 1
    assert "none of this person's" in capsys.readouterr().err
    assert main(["doctor"]) == 0
    with monkeypatch.context() as patched:
        wrong = {"MODEL_SET": "nope", "SCENARIO": "nope", "PROFILE": "nope", "NEO4J_URL": "http://localhost:1"}
        for name, value in wrong.items():
            patched.setenv(f"MEMORY_PIPELINES_{name}", value)
        assert main(["doctor"]) == 1
    assert capsys.readouterr().out.count("FAULT") == len(wrong)
    # a vector and a graph are lost, and made again
    with house.platform() as platform:
        platform.vectors.delete([entry])
        key, version = min(platform.authority.graphs().items())
        platform.graph.drop(platform.authority.people([key])[key], version)
    assert main(["stores", "check"]) == 1
    assert main(["stores", "repair"]) == 0
    assert main(["stores", "check"]) == 0
    for store in rebuild.STORES:
        assert main(["stores", "rebuild", store]) == 0
    # another model, and back
    with connect(replace(house.settings, embedder="use"), clock=FixedClock(NOW)) as platform:
        assert platform.searched()[0].model_id != platform.embedder.model_id
        done = reembed.reembed(platform, timedelta(0))
        assert done.embedded == platform.vectors.count() > 0
        assert platform.searched()[0].model_id == platform.embedder.model_id
        assert agreement.check(platform).whole
    assert main(["stores", "reembed"]) == 0
    with house.platform() as platform:
        assert {store: rebuild.content(platform, store) for store in rebuild.STORES} == before
    # a backup, an erasure, a restore
    assert main(["backup", str(tmp_path / "copy")]) == 0
    with house.platform() as platform:
        request = forget.request_erasure(platform, person, "desk")
        forget.approve_erasure(platform, request, "officer")
        forget.erase_waiting(platform)
        after = {store: rebuild.content(platform, store) for store in ("vector", "graph", "cold")}
    assert main(["restore", str(tmp_path / "copy")]) == 1
    assert "--replace" in capsys.readouterr().err
    assert main(["restore", str(tmp_path / "copy"), "--replace"]) == 0
    assert f"{len(owners) - 1} persons are visible; 1 erasures" in capsys.readouterr().out
    assert main(["stores", "check"]) == 0
    with house.platform() as platform:
        assert person not in platform.authority.owners()
        assert {store: rebuild.content(platform, store) for store in ("vector", "graph", "cold")} == after
        assert forget.sweep_erased(platform).survivors == {}
        others = [o for o in platform.authority.owners() if platform.authority.visible(o)]
        assert platform.recall.recall("order", tenant=others[0].tenant, subject=others[0].subject).missing == ()
    with house.instance() as instance:
        assert house.main_job(instance)["unfinished"] == [0, 0, 0, 0, 0]
    # and into a bucket
    assert main(["backup", "s3://copies/one"]) == 0
    assert main(["restore", "s3://copies/one", "--replace"]) == 0
    assert main(["stores", "check"]) == 0

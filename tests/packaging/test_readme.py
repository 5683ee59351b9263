"""The README's commands exist, and commands and settings are documented."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from memory_pipelines import cli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = "\n".join(re.findall(r"```(?:sh|bash)\n(.*?)```", README, re.S))


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def test_every_make_target_of_the_readme_exists() -> None:
    named = set(re.findall(r"\bmake ([a-z-]+)", README))
    assert {"run", "ui", "test"} <= named
    assert named <= _targets()


def test_every_command_line_of_the_readme_parses() -> None:
    import shlex

    lines = [line.split("#")[0] for line in CODE.splitlines() if "memory-pipelines " in line]
    assert lines
    for line in lines:
        words = shlex.split(line[line.index("memory-pipelines") :])[1:]
        cli._parser().parse_args(words)


def test_every_command_is_in_the_readme() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "memory_pipelines.cli", "--help"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    commands = re.findall(r"^    ([a-z-]+)(?: |$)", listed, re.M)  # a long name has its line to itself
    assert {"import", "quarantine", "recall"} <= set(commands)
    for command in commands:
        assert f"memory-pipelines {command}" in README, command


@pytest.mark.parametrize("page", [*sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("*.md")), "docs"])
def test_links_lead_somewhere(page: str) -> None:
    pages = [ROOT / page] if page != "docs" else sorted((ROOT / "docs").rglob("*.md"))
    for path in pages:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_python_example_of_the_readme_compiles() -> None:
    examples = re.findall(r"```python\n(.*?)```", README, re.S)
    assert examples
    for example in examples:
        compile(example, "README.md", "exec")

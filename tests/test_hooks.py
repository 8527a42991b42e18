"""The hooks of git (.pre-commit-config.yaml) ask for what tests/run asks for."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]


def _hooks() -> dict[str, dict[str, object]]:
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    return {hook["id"]: hook for hook in repo["hooks"]}


def test_hooks_check_what_the_tests_check() -> None:
    """Each calls a command of tests/run, and types are asked of the same files."""
    run = (ROOT / "tests" / "run").read_text(encoding="utf-8")
    hooks = _hooks()
    tools = [str(hook["entry"]) for hook in hooks.values() if hook["language"] == "system" and hook["id"] != "fast"]
    assert [entry for entry in tools if entry.replace(".venv/bin/", "$bin/").split(" --force")[0] not in run] == []
    assert "--fast" in run.partition("set -e")[0]
    assert hooks["fast"]["entry"] == "tests/run --fast"
    wanted = re.search(r"case \$file in ([^)]+)\) typed\+=", run)
    assert wanted is not None
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    typed, not_typed = (re.compile(str(hooks["mypy"][key])) for key in ("files", "exclude"))
    for name in listed.stdout.splitlines():
        asked = any(fnmatch(name, pattern) for pattern in wanted[1].split(" | ")) and "agent/roots/" not in name
        assert asked == bool(typed.search(name) and not not_typed.search(name)), name


@pytest.mark.parametrize(("letter", "length"), [("a", 72), ("ä", 72), ("€", 72), ("a", 73), ("ä", 73), ("€", 73)])
def test_the_subject_of_a_commit_has_at_most_72_characters(letter: str, length: int) -> None:
    """The hook counts characters, not bytes, and of the first line alone."""
    message = f"{letter * length}\n\n{'a body may be as wide as it likes ' * 5}\n"
    refused = re.compile(str(_hooks()["subject"]["entry"]).encode(), re.MULTILINE | re.DOTALL).search(message.encode())
    assert bool(refused) == (length > 72)

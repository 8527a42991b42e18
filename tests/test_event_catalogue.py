"""The catalogue of kinds of events: every kind that the code brings is in it, and something brings every entry."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from soakwatch.cli.commands.metrics import command
from soakwatch.core.event_kinds import is_internal, is_run_admin, matters
from soakwatch.core.registry import INSTALLED
from soakwatch.sources.receivers import trap_event
from soakwatch_agent.kernlog import KINDS as ALARMS
from soakwatch_model.crash_kinds import KERNEL
from soakwatch_model.event_catalogue import BY_NAME, CATALOGUE, FAMILIES, Origin, event_kind
from soakwatch_rules.traits import traits_of

ROOT = Path(__file__).parents[1]
SOURCES = tuple(
    file
    for folder in ("agent/soakwatch_agent", "collector/soakwatch", "collector/plugins")
    for file in sorted((ROOT / folder).rglob("*.py"))
    if "testing" not in file.parts
)
MAKERS = frozenset({"Event", "event", "Move", "notable", "_tell", "Change", "unreported"})
"""What makes an event, or the draft of one, of a kind that is its first argument (or its second)."""
KIND = re.compile(r"[a-z_]+(\.[a-z_]+)+|reboot|watchdog|gap|failover")


def constants(tree: ast.Module) -> dict[str, str]:
    """The texts that names of a module stand for."""
    texts: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            pairs = [(node.targets[0], node.value)]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        else:
            continue
        for target, value in pairs:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = value.elts if isinstance(value, ast.Tuple) else [value]
            if len(names) != len(values):
                continue
            for name, each in zip(names, values, strict=True):
                if isinstance(name, ast.Name) and isinstance(each, ast.Constant) and isinstance(each.value, str):
                    texts[name.id] = each.value
    return texts


@cache
def emitted() -> frozenset[tuple[str, str]]:
    """Kinds of events that the code makes, and where."""
    return frozenset(_emitted())


def _emitted() -> Iterator[tuple[str, str]]:
    known = constants(ast.parse((ROOT / "collector/soakwatch/core/event_kinds.py").read_text(encoding="utf-8")))
    for file in SOURCES:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        texts = known | constants(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name not in MAKERS:
                continue
            for argument in node.args[:2]:
                branches = [argument.body, argument.orelse] if isinstance(argument, ast.IfExp) else [argument]
                for each in branches:
                    text = texts.get(each.id) if isinstance(each, ast.Name) else getattr(each, "value", None)
                    if isinstance(text, str) and KIND.fullmatch(text):
                        yield text, file.relative_to(ROOT).as_posix()
    for kind in trap_event._KINDS.values():
        yield kind, "traps"
    for alarm in ALARMS:
        yield f"kernel.{alarm}", "the kernel's log"
    for file in sorted((ROOT / "collector/soakwatch/sources/profiles/data").rglob("*.yaml")):
        for kind in re.findall(r"\bkind: *['\"]?([a-z][a-z_.]*)", file.read_text(encoding="utf-8")):
            yield kind, file.name


def test_every_kind_that_the_code_brings_is_in_the_catalogue() -> None:
    emitted_kinds = emitted()
    assert not {(kind, where) for kind, where in emitted_kinds if kind not in BY_NAME}
    assert len({kind for kind, _ in emitted_kinds}) > 45, "the scan finds what it looks for"


def test_every_entry_is_brought_by_something() -> None:
    """What no code names any more goes from the catalogue; users bring the kinds that rules treat in their own way."""
    emitted_kinds = {kind for kind, _ in emitted()}
    named = "\n".join(file.read_text(encoding="utf-8") for file in SOURCES)
    of_users = {kind.name for kind in CATALOGUE if kind.source.startswith("users")}
    assert not {name for name in BY_NAME if name not in emitted_kinds and f'"{name}"' not in named} - of_users


def test_what_rules_of_crashes_judge_is_in_the_catalogue() -> None:
    judged = {kind for name in INSTALLED.rules.names() for kind in traits_of(name).event_kinds}
    assert judged <= set(BY_NAME)
    assert set(KERNEL) <= set(BY_NAME)
    assert {kind.name for kind in CATALOGUE if kind.crash} <= judged


def test_names_are_unique_and_meanings_are_there() -> None:
    assert len(BY_NAME) == len(CATALOGUE)
    for kind in CATALOGUE:
        assert kind.about, kind.name
        assert kind.source, kind.name
        assert not kind.about.endswith("."), kind.name


@pytest.mark.parametrize("kind", ["flap", "vrrp.change", "failover of 10 s"])
def test_a_kind_of_a_user_is_an_intervention(kind: str) -> None:
    known = event_kind(kind)
    assert (known.name, known.origin, known.explains, known.intervention) == (kind, Origin.OPERATOR, True, True)
    assert not is_internal(kind)
    assert matters(kind)


def test_an_unknown_kind_is_treated_as_its_family() -> None:
    assert set(FAMILIES) >= {"process", "hook", "recorder"}
    assert not event_kind("process.hung").explains
    assert is_run_admin("hook.slow")
    assert is_internal("recorder.full")
    assert not matters("phase.paused")


def test_the_command_lists_them() -> None:
    """With the pattern of the metrics; what matches nothing is refused with the nearest."""
    listed = CliRunner().invoke(command, ["--events", "kernel"]).output
    assert [line.split()[0] for line in listed.splitlines()][:3] == ["event", "kernel.panic", "kernel.oops"]
    refused = CliRunner().invoke(command, ["--events", "kernel.opos"])
    assert "no kind of event matches 'kernel.opos'; did you mean 'kernel.oops'?" in str(refused.exception)

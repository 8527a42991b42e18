"""What a machine told of itself, in every output of `judge` and `report`: what is amiss, and what differs."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from html import unescape
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from soakwatch.cli.main import run
from soakwatch.record import Record
from soakwatch.report.json import verdict_schema
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_model.tree import Tree
from soakwatch_testing.scenarios.setup import SOUND, card, host, link

S = 10**9
T0 = 1_790_000_000 * S
SLOW = host({"eth0": card(pcie=link(4, 8)), "eth1": card()})
WORDS = "the PCIe link of eth0 runs at x4 at 8 GT/s, which carries 31.5 Gbit/s each way"


def command(*words: str) -> tuple[int, str]:
    """Exit code and output of a command."""
    with redirect_stdout(io.StringIO()) as printed:
        return run(list(words)), " ".join(printed.getvalue().split())


def recorded(folder: Path, machine: dict[str, Tree], *events: Event) -> Path:
    """A calm run of ten minutes on this machine."""
    with Record.create(folder) as record:
        record.target("dut", "dut")
        record.begin_span(T0)
        record.set_meta("run", folder.name)
        record.set_meta("fingerprint", json.dumps({"dut": machine}))
        source = record.source("dut", "local", "dut/local", 10 * S, required=True).id
        polls = []
        for due in range(T0, T0 + 600 * S, 10 * S):
            sample = Sample("system.cpu.utilization", "", 0.3 + (due // S % 7) / 100, due)
            polls.append(Poll(source, due, due, S // 100, PollOutcome.OK, None, Answer((sample,), (), ())))
        record.put(polls)
        for event in events:
            record.add_event("dut", event, "monitor")
        record.finish()
    return folder


def reports(folder: Path, run_folder: Path, *more: str) -> dict[str, str]:
    """The texts of all formats, and of the terminal."""
    files = {kind: folder / f"report.{kind}" for kind in ("html", "md", "junit", "json")}
    words = (word for kind, path in files.items() for word in (f"--{kind}", str(path)))
    assert command("report", str(run_folder), *words, *more)[0] == 0
    texts = {kind: path.read_text() for kind, path in files.items()}
    return {**texts, "terminal": command("report", str(run_folder), *more)[1]}


def plain(text: str) -> str:
    """Without marks of HTML and Markdown, and with single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).replace("\\", "").split())


def test_a_slow_slot_is_told_in_every_output(tmp_path: Path) -> None:
    """x4 of x8: a warning with its remedy, and the run passes all the same."""
    folder = recorded(tmp_path / "night", SLOW)
    code, printed = command("judge", str(folder))
    assert code == 0
    assert WORDS in printed
    texts = reports(tmp_path, folder)
    assert [kind for kind, text in texts.items() if WORDS not in plain(text)] == []
    assert [kind for kind, text in texts.items() if "put it into a slot" not in plain(text)] == []
    verdict = json.loads(texts["json"])
    jsonschema.Draft202012Validator(json.loads(verdict_schema())).validate(verdict)
    (warned,) = [f for f in verdict["findings"] if f["rule"] == "setup"]
    assert (warned["outcome"], warned["object"], warned["measured"], warned["limit"]) == (
        "warn",
        "interface=eth0,check=pcie",
        4.0,
        8.0,
    )
    assert verdict["changed"] is None
    assert plain(texts["html"]).count("Check this") == 1


def test_a_sound_machine_alone_passes_nothing(tmp_path: Path) -> None:
    """How a device is set up says nothing of what it withstood."""
    code, printed = command("judge", str(recorded(tmp_path / "night", SOUND)), "--rule", "setup", "--rule", "level")
    assert code == 3
    assert "only its set-up was judged" in printed
    texts = reports(tmp_path, tmp_path / "night")
    assert "Check this" not in texts["html"]


@pytest.mark.parametrize("action", ["fail", "ignore"])
def test_a_plan_says_what_a_slow_slot_means(tmp_path: Path, action: str) -> None:
    """It may fail the run, or be left out."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "name: n\nduration: 10m\ntargets: {dut: {sources: [{local: {interval: 10s}}]}}\n"
        f"rules: {{setup: {{pcie: {action}}}}}\n"
    )
    code, printed = command("judge", str(recorded(tmp_path / "night", SLOW)), "--plan", str(plan))
    assert (code, WORDS in printed) == ((1, True) if action == "fail" else (0, False))


def test_a_set_up_that_changed_meanwhile_is_told(tmp_path: Path) -> None:
    """What the engine found at the end of the run is a warning."""
    at = T0 + 599 * S
    event = Event("setup.change", "dut", "", at, at, {"cpu governor": "performance -> powersave"})
    _, printed = command("judge", str(recorded(tmp_path / "night", SOUND, event)))
    assert "the set-up changed during the run (cpu governor: performance -> powersave)" in printed


def test_what_differs_from_an_earlier_run_is_told_in_every_output(tmp_path: Path) -> None:
    """The governor, and not the processes, which come and go."""
    before = recorded(tmp_path / "before", {**SOUND, "processes": {"sshd": 2}})
    after = recorded(
        tmp_path / "after", {**host({"eth0": card(), "eth1": card()}, governor="powersave"), "processes": {"sshd": 3}}
    )
    texts = reports(tmp_path, after, "--against", str(before))
    for kind, text in texts.items():
        assert "dut cpu governor" in text.replace("\\", ""), kind
        assert "sshd" not in plain(text).partition("Changed since")[2].partition("Set-up")[0], kind
    for kind in ("html", "md", "terminal"):
        assert "Compared with before" in plain(texts[kind]), kind
        assert "performance" in plain(texts[kind]).partition("Compared with before")[2], kind
    verdict = json.loads(texts["json"])
    jsonschema.Draft202012Validator(json.loads(verdict_schema())).validate(verdict)
    assert verdict["changed"] == {
        "run": "before",
        "setup": [{"fact": "dut cpu governor", "before": "performance", "now": "powersave"}],
        "plan": [],
    }
    told = {p.get("name"): p.get("value") for p in ET.fromstring(texts["junit"]).iter("property")}
    assert told == {"compared with": "before", "changed dut cpu governor": "performance -> powersave"}

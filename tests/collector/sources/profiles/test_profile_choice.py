"""Which profile a device gets, what it says about itself, and the commands that show it."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.collector.sources.profiles.kit import IF, Device, interfaces, profile

from soakwatch.cli.commands.profiles import command as profiles_command
from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.sources.profiles import Match, Profiles, Value, load_profiles, match, read_facts
from soakwatch.sources.profiles.__main__ import main
from soakwatch.sources.profiles.recording import load_recording

NET_SNMP = "1.3.6.1.4.1.8072.3.2.10"


def choose(
    folder: Path, object_id: str, description: str, answers: dict[str, str], **heads: str
) -> tuple[Match, list[str]]:
    for name, head in heads.items():
        (folder / f"{name}.yaml").write_text(f"title: {name}\n{head}\n")
    asked: list[str] = []

    async def present(oid: str) -> str | None:
        asked.append(oid)
        return answers.get(oid)

    chosen = asyncio.run(match(object_id, description, present, Profiles((folder,)).heads()))
    return chosen, asked


def test_whole_arcs_of_the_object_id_count_and_the_longest_wins(tmp_path: Path) -> None:
    heads = {
        "a": "select: [{object_id: 1.3.6.1.4.1.9}]",
        "b": "select: [{object_id: [1.3.6.1.4.1.9.1, 1.3.6.1.4.1.9.12]}]",
    }
    assert choose(tmp_path, "1.3.6.1.4.1.9.1.5", "", {}, **heads)[0] == Match(
        "b", "sysObjectID lies under 1.3.6.1.4.1.9.1"
    )
    assert choose(tmp_path, "1.3.6.1.4.1.9.11", "", {}, **heads)[0].name == "a"
    assert choose(tmp_path, "1.3.6.1.4.1.99", "", {}, **heads)[0].name == "generic"
    assert choose(tmp_path, "", "", {}, **heads)[0] == Match(
        "generic", "no profile knows the sysObjectID that the device does not report"
    )


def test_a_rank_a_description_and_an_answer_decide(tmp_path: Path) -> None:
    heads = {
        "plain": f"select: [{{object_id: {NET_SNMP}}}]",
        "told": f"select: [{{object_id: {NET_SNMP}, description: vyos}}]",
        "not": f"select: [{{object_id: {NET_SNMP}, description: vyos, not_description: beta}}]",
        "asked": f"select: [{{object_id: {NET_SNMP}, present: 1.3.6.1.4.1.7.1.0, text: '^GW'}}]\nrank: 1",
    }
    oid = "1.3.6.1.4.1.7.1.0"
    assert choose(tmp_path, NET_SNMP, "Linux", {}, **heads) == (
        Match("plain", f"sysObjectID lies under {NET_SNMP}"),
        [oid],
    )
    assert choose(tmp_path, NET_SNMP, "VyOS 1.4", {}, **heads)[0].name == "not"
    assert choose(tmp_path, NET_SNMP, "VyOS beta", {}, **heads)[0].name == "told"
    assert choose(tmp_path, NET_SNMP, "VyOS", {oid: "GW 7"}, **heads)[0].name == "asked"
    assert choose(tmp_path, NET_SNMP, "Linux", {oid: "other"}, **heads)[0].name == "plain"
    assert choose(tmp_path, "1.3.6.1.4.1.9", "Linux", {oid: "GW"}, **heads)[1] == [], (
        "not asked where the rest does not hold"
    )


def test_a_head_that_cannot_be_read_alone_is_read_with_its_file(tmp_path: Path) -> None:
    odd = "gnmi: {paths: [{path: &driver odd, metric: odd}]}\nselect: [\n{description: *driver},\n]"
    assert choose(tmp_path, "", "an odd box", {}, odd=odd)[0].name == "odd"
    with pytest.raises(PlanError, match=r"bad\.yaml:2:11: unknown key 'descripton'; did you mean 'description'"):
        choose(tmp_path, "", "", {}, bad="select: [{descripton: x}]")


def test_shipped_profiles_are_chosen_for_plain_devices() -> None:
    async def present(_: str) -> str | None:
        return None

    heads = load_profiles().heads()
    for object_id, description, name in (
        (NET_SNMP, "Linux host 6.1.0-18-amd64 #1 SMP x86_64", "linux"),
        ("1.3.6.1.4.1.2021.250.10", "Linux box 2.4", "linux"),
        ("1.3.6.1.4.1.424242.1", "an appliance", "generic"),
    ):
        assert asyncio.run(match(object_id, description, present, heads)).name == name


def test_facts(tmp_path: Path) -> None:
    selected = profile(
        tmp_path,
        "title: x\nsnmp:\n  facts:\n    version: {oid: [1.3.1.0, 1.3.2.0], match: 'Version ([^ ,]+)'}\n"
        "    serial: {column: 1.3.3}\n    model: {column: [1.3.8, 1.3.3], joined: true}\n"
        "    address: {oid: 1.3.5.0, as: ip}\n"
        "    reboot_reason: {oid: 1.3.4.0, values: {6: watchdog}}\n    absent: {oid: 1.3.9.0}\n",
    )
    values: dict[str, Value] = {"1.3.1.0": b"no such word", "1.3.2.0": b"Cisco Version 9.1(2),\x00 x"}
    values |= {"1.3.3.10": b"B", "1.3.3.2": b"", "1.3.3.9": b"A", "1.3.4.0": 6, "1.3.5.0": b"\x0a\x00\x00\x01"}
    device = Device(values)
    assert asyncio.run(read_facts(device, selected)) == {
        "version": "9.1(2)",
        "serial": "A",
        "model": "A, B",
        "address": "10.0.0.1",
        "reboot_reason": "watchdog",
    }


def show(*words: str) -> Result:
    return CliRunner().invoke(profiles_command, words)


def test_the_command_lists_shows_matches_and_prints_the_schema(tmp_path: Path) -> None:
    listed = show().output
    assert {"generic", "linux"} <= {line.split()[0] for line in listed.splitlines()}
    assert not any(line.startswith("_") for line in listed.splitlines())
    shown = show("linux").output
    for words in (
        "sysObjectID lies under 1.3.6.1.4.1.8072.3.2.10",
        "system.network.io",
        "1.3.6.1.2.1.31.1.1.1.6",
        "the device renews it each 5 s",
        "Events from log lines: kernel.oom",
        "{packet}",
    ):
        assert words in shown, words
    assert show("--match", ".1.3.6.1.4.1.8072.3.2.10", "Linux x").output.startswith("linux: sysObjectID lies under")
    assert show("--table", "cisco-ios").output.splitlines()[1].split()[:5] == [
        "cisco-ios",
        "own",
        "own",
        "own",
        "depth",
    ]
    assert json.loads(show("--schema").output)["additionalProperties"] is False
    (tmp_path / "mine.yaml").write_text("title: my box\nextends: [generic]\n")
    assert "my box" in show("--folder", str(tmp_path), "mine").output
    wrong = show("lnux")
    assert isinstance(wrong.exception, SoakwatchError)
    assert "did you mean 'linux'?" in str(wrong.exception)


def recorded(folder: Path) -> Path:
    lines = [
        "1.3.6.1.2.1.1.2.0|6|1.3.6.1.4.1.8072.3.2.10",
        "1.3.6.1.2.1.1.1.0|4x|4C696E7578",
        "nonsense",
        "1.3.6|999|x",
        "1.3.6.2|2|x",
    ]
    for oid, value in interfaces({2: "eth0", 10: "eth1"}).items():
        lines.append(f"{oid}|4|{value.decode()}" if isinstance(value, bytes) else f"{oid}|65|{value}")
    lines += [
        f"{IF}.13.2|65|99",
        "1.3.6.1.2.1.4.20.1.1.10.0.0.1|64|10.0.0.1",
        "1.3.6.1.2.1.4.20.1.1.10.0.0.2|64x|0A000002",
    ]
    file = folder / "box.snmprec.gz"
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    return file


def test_a_recording_answers_like_the_device(tmp_path: Path) -> None:
    device = load_recording(recorded(tmp_path))
    assert device.skipped == 3
    walked = asyncio.run(device.walk([f"{IF}.8"]))
    assert list(walked) == [f"{IF}.8.2", f"{IF}.8.10"], "in the order of numbers"
    got = asyncio.run(device.get(["1.3.6.1.2.1.1.1.0", f"{IF}.13.2", "1.3.6.1.2.1.4.20.1.1.10.0.0.2", "1.3.6.9"]))
    assert got == {"1.3.6.1.2.1.1.1.0": b"Linux", f"{IF}.13.2": 0, "1.3.6.1.2.1.4.20.1.1.10.0.0.2": "10.0.0.2"}
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b\x08 no gzip")
    for name in ("bad.gz", "absent", "."):
        with pytest.raises(PlanError, match=r"cannot be read|holds no line"):
            load_recording(tmp_path / name)


def test_a_profile_is_tried_on_a_recording(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--try", str(recorded(tmp_path))])
    assert result.exit_code == 0
    assert "box.snmprec.gz: linux (sysObjectID lies under 1.3.6.1.4.1.8072.3.2.10)" in result.output
    assert "system.network.io{interface=eth1,direction=receive} = 10000  <- 1.3.6.1.2.1.31.1.1.1.6.10" in result.output
    (tmp_path / "bad.yaml").write_text("titel: x\n")
    result = CliRunner().invoke(main, [str(tmp_path / "bad.yaml"), str(tmp_path / "none.yaml")])
    assert result.exit_code == 2
    assert "bad.yaml:1:1: unknown key 'titel'; did you mean 'title'?" in result.output
    assert "none.yaml: there is no such file" in result.output
    (tmp_path / "good.yaml").write_text("title: good\nextends: [generic]\n")
    result = CliRunner().invoke(main, [str(tmp_path / "good.yaml")])
    assert result.exit_code == 0
    assert "interfaces (watch interface)" in result.output

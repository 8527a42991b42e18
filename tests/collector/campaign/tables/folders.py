"""Folders of campaigns as a driver leaves them: the file, the ledger, and small records with known figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.campaign.campaign_file import load_campaign
from soakwatch.campaign.campaign_model import Cell
from soakwatch.campaign.folder import folder_names, run_folder
from soakwatch.campaign.ledger import BEGIN, CAMPAIGN, END, LOST, Ledger, open_ledger
from soakwatch.record import Record
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample

SECOND = 10**9
T0 = 1_795_200_000 * SECOND
SECONDS, _DIP_S = 20, 4
PLAN = """\
plan:
  name: base
  duration: 20s
  phases: [{soak: 20s}]
  targets:
    dut: {role: dut, sources: [{local: {}}]}
    gen: {role: generator, sources: [{command: {run: ["true", "64", "20%", "dev", "ips"], interval: 1s}}]}
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run was: its verdict (``lost`` for one that was broken off, ``running`` for one that goes on), its figures
    by metric, and why. ``dip`` is what the figures are multiplied with in the first four seconds."""

    verdict: str = "pass"
    figures: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    dip: float = 1.0


def campaign_folder(folder: Path, asked: str, runs: Mapping[tuple[str, ...], Sequence[Ran]]) -> Path:
    """A campaign of this file whose cells have these runs; repetitions without one are waiting."""
    folder.mkdir(parents=True)
    (folder / "campaign.yaml").write_text(asked, encoding="utf-8")
    campaign = load_campaign(folder / "campaign.yaml")
    names = folder_names(campaign.cells)
    with open_ledger(folder) as ledger:
        ledger.add(T0, CAMPAIGN, digest=campaign.digest)
        for number, cell in enumerate(campaign.cells):
            for repetition, ran in enumerate(runs.get(tuple(cell.values.values()), ()), 1):
                begin_ns = T0 + (number * 100 + repetition) * 60 * SECOND
                _run(
                    folder, ledger, cell, repetition, f"runs/{run_folder(names[cell.id], repetition, 1)}", ran, begin_ns
                )
    return folder


def _run(folder: Path, ledger: Ledger, cell: Cell, repetition: int, place: str, ran: Ran, begin_ns: int) -> None:
    about = {"cell": cell.id, "repetition": repetition, "attempt": 1}
    ledger.add(begin_ns, BEGIN, **about, folder=place, testbed="")  # type: ignore[arg-type]
    if ran.verdict == "lost":
        ledger.add(begin_ns + SECOND, LOST, **about, reason=ran.reason)  # type: ignore[arg-type]
        return
    record(folder / place, ran, begin_ns, {**cell.values, "cell": cell.id})
    if ran.verdict != "running":
        end_ns = begin_ns + SECONDS * SECOND
        ledger.add(end_ns, END, **about, verdict=ran.verdict, reason=ran.reason, begin_ns=begin_ns, end_ns=end_ns)  # type: ignore[arg-type]
        (folder / place / "report.html").write_text("<!DOCTYPE html><title>a run</title>", encoding="utf-8")


def record(folder: Path, ran: Ran, begin_ns: int, labels: Mapping[str, str]) -> None:
    """A record of 20 s whose generator says these figures each second, the same each second."""
    import json

    with Record.create(folder) as written:
        for key, text in {"run": folder.name, "start_ns": str(begin_ns), "labels": json.dumps(dict(labels))}.items():
            written.set_meta(key, text)
        written.target("gen", "generator")
        source = written.source("gen", "command", "command", SECOND, required=True).id
        written.begin_phase("soak", begin_ns)
        polls = []
        for second in range(SECONDS + 1):
            due = begin_ns + second * SECOND
            part = ran.dip if second < _DIP_S else 1.0
            samples = tuple(Sample(metric, "", value * part, due) for metric, value in ran.figures.items())
            polls.append(Poll(source, due, due, 9, PollOutcome.OK, None, Answer(samples, (), ())))
        written.put(polls)
        written.end_phase(begin_ns + SECONDS * SECOND)
        if ran.verdict != "running":
            written.set_meta("ended_ns", str(begin_ns + SECONDS * SECOND))
            written.set_meta("verdict", ran.verdict)
            written.set_meta("reason", ran.reason or f"it is a {ran.verdict}")
            written.finish()

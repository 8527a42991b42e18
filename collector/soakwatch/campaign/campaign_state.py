"""How a campaign stands, from its folder alone: the copy of its file, its ledger, and the folders of its runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from soakwatch.campaign import ledger as kinds
from soakwatch.campaign.attempt import DONE, judged, read_result, worked_on
from soakwatch.campaign.campaign_file import CAMPAIGN_COPY, load_campaign, load_outline
from soakwatch.campaign.campaign_keys import Outline
from soakwatch.campaign.campaign_model import ENDED, LOST, RUNNING, CampaignState, CellRun
from soakwatch.campaign.ledger import LEDGER, Entry, read_ledger
from soakwatch.campaign.locks import held
from soakwatch.campaign.planned_runs import block
from soakwatch.core.errors import EXIT_BROKEN

ON_CLUSTER = "on the cluster"
"""How far a run is that a worker of a cluster makes: nothing of it is known here before it comes back."""


@dataclass(slots=True)
class History:
    """What a ledger tells: every attempt, the latest last, by cell and repetition; and the last repetition of cells
    whose figure is known well enough."""

    attempts: dict[tuple[str, int], list[CellRun]] = field(default_factory=dict)
    enough: dict[str, int] = field(default_factory=dict)
    faults: dict[tuple[str, int, int], str] = field(default_factory=dict)
    lengths_s: dict[str, list[float]] = field(default_factory=dict)
    monitor_failed: set[tuple[str, int]] = field(default_factory=set)
    complete: bool = False


def read_state(folder: Path) -> CampaignState:
    """A campaign as it stands. A run that was begun and has no end in the ledger is running where a process works on
    it, and otherwise what its folder says: ended or lost.

    Raises CampaignError if the folder is none of a campaign or its ledger is damaged, PlanError if its copy of the
    campaign cannot be read.
    """
    entries = read_ledger(folder)
    campaign = load_outline(folder / CAMPAIGN_COPY)
    return outline_state(campaign, folder, entries)


def outline_state(campaign: Outline, folder: Path, entries: tuple[Entry, ...]) -> CampaignState:
    """How a campaign stands by the lines of its ledger and its folders."""
    return state_of(campaign, folder, _with_workers(folder, entries, history_of(campaign, folder, entries)))


def read_all(folder: Path) -> tuple[Outline, CampaignState, History]:
    """The campaign of a folder with the planned lengths of its runs, how it stands, and its history. Raises as
    ``read_state``; a ledger that does not say the lengths takes the plans, which may raise PlanError too."""
    entries = read_ledger(folder)
    campaign = load_outline(folder / CAMPAIGN_COPY)
    planned = entries[0].numbers("seconds") if entries else {}
    if planned.keys() >= {cell.id for cell in campaign.cells}:
        campaign = campaign.model_copy(update={"seconds": planned})
    else:
        campaign = load_campaign(folder / CAMPAIGN_COPY, begun=True)
    history = _with_workers(folder, entries, history_of(campaign, folder, entries))
    return campaign, state_of(campaign, folder, history), history


def unfinished(entries: Iterable[Entry]) -> dict[tuple[str, int, int], Entry]:
    """The runs of which a ledger has no end, by cell, repetition and attempt, with how they were begun last."""
    begun: dict[tuple[str, int, int], Entry] = {}
    for entry in entries:
        key = (entry.cell, entry.repetition, entry.attempt)
        if entry.kind in {kinds.BEGIN, kinds.RESUME}:
            begun[key] = entry
        elif entry.kind in {kinds.END, kinds.LOST}:
            begun.pop(key, None)
    return begun


def _with_workers(folder: Path, entries: tuple[Entry, ...], history: History) -> History:
    """The history, with the runs that a cluster makes for a driver that lives: they left nothing here yet."""
    away = {key for key, entry in unfinished(entries).items() if entry.text("on") == ON_CLUSTER}
    if not away or not held(folder / LEDGER):
        return history
    for attempts in history.attempts.values():
        attempts[:] = [
            replace(run, state=RUNNING, reason=ON_CLUSTER)
            if run.state == LOST and (run.cell.id, run.repetition, run.attempt) in away
            else run
            for run in attempts
        ]
    return history


def state_of(campaign: Outline, folder: Path, history: History) -> CampaignState:
    """The state that a history is."""
    runs: list[CellRun] = []
    for repetition in range(1, campaign.repeat.at_most + 1):
        for cell in block(campaign.cells, campaign.seed, repetition):
            attempts = history.attempts.get((cell.id, repetition))
            if attempts:
                runs += attempts
            elif repetition <= history.enough.get(cell.id, campaign.repeat.at_least):
                runs.append(CellRun(cell, repetition))
    return CampaignState(
        campaign.name, folder, campaign.axes, campaign.cells, tuple(runs), campaign.labels, history.complete
    )


def history_of(campaign: Outline, folder: Path, entries: tuple[Entry, ...] | list[Entry]) -> History:
    """What the ledger and the folders of unfinished runs tell."""
    history = History()
    cells = {cell.id: cell for cell in campaign.cells}
    for entry in entries:
        history.complete = entry.kind == kinds.COMPLETE or (
            history.complete and entry.kind in {kinds.CAMPAIGN, kinds.TERMINAL_LOST}
        )
        cell = cells.get(entry.cell)
        if cell is None:
            continue
        attempts = history.attempts.setdefault((cell.id, entry.repetition), [])
        if entry.kind == kinds.ENOUGH:
            history.enough[cell.id] = entry.repetition
        elif entry.kind == kinds.BEGIN:
            place = folder / entry.text("folder")
            attempts.append(
                CellRun(
                    cell,
                    entry.repetition,
                    entry.attempt,
                    RUNNING,
                    folder=place,
                    testbed=entry.text("testbed"),
                    begin_ns=entry.time_ns,
                )
            )
        elif entry.kind == kinds.RESUME and attempts:
            attempts[-1] = replace(attempts[-1], state=RUNNING, reason="", end_ns=None)
        elif entry.kind in {kinds.END, kinds.LOST} and attempts:
            attempts[-1] = _over(attempts[-1], entry)
            if entry.whole("exit_code") == EXIT_BROKEN:
                history.monitor_failed.add((cell.id, entry.repetition))
            if entry.text("fault"):
                history.faults[cell.id, entry.repetition, entry.attempt] = entry.text("fault")
            length_s = _length(attempts[-1])
            if entry.kind == kinds.END and length_s is not None:
                history.lengths_s.setdefault(cell.id, []).append(length_s)
        if not attempts:
            del history.attempts[cell.id, entry.repetition]
    for attempts in history.attempts.values():
        attempts[:] = [as_it_stands(run) if run.state == RUNNING else run for run in attempts]
    return history


def _over(run: CellRun, entry: Entry) -> CellRun:
    begin, end = entry.whole("begin_ns"), entry.whole("end_ns")
    return replace(
        run,
        state=ENDED if entry.kind == kinds.END else LOST,
        verdict=entry.text("verdict") or None,
        reason=entry.text("reason"),
        begin_ns=begin or run.begin_ns,
        end_ns=end or entry.time_ns,
    )


def _length(run: CellRun) -> float | None:
    return None if run.begin_ns is None or run.end_ns is None else (run.end_ns - run.begin_ns) * 1e-9


def as_it_stands(run: CellRun) -> CellRun:
    """A run without an end in the ledger, by its folder: running, ended or lost."""
    assert run.folder is not None
    busy = worked_on(run.folder)
    result = read_result(run.folder)
    if result is not None and result.stage == DONE:
        ended = result.verdict is not None and not result.stopped
        return replace(
            run,
            state=ENDED if ended else LOST,
            verdict=result.verdict,
            reason=result.reason,
            begin_ns=result.begin_ns,
            end_ns=result.end_ns,
        )
    if busy:
        return replace(run, reason="" if result is None else result.stage)
    if result is None:
        return replace(run, state=LOST, reason="it was broken off before it began")
    found = judged(run.folder, result, None)
    if found.verdict is not None and not found.stopped:
        return replace(run, state=ENDED, verdict=found.verdict, reason=found.reason)
    return replace(run, state=LOST, verdict=found.verdict, reason=found.reason or "it was broken off")

"""What a campaign is going to do: its runs in their order, and how long that takes."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from hashlib import sha256

from soakwatch.campaign.campaign_keys import Campaign, Outline
from soakwatch.campaign.campaign_model import CampaignError, Cell
from soakwatch.core.suggest import hint
from soakwatch.core.yaml import Plain

ALLOWANCE_S = 3.0
"""What a run takes besides its planned length as long as nobody has measured it: start, judging, report."""


def planned_runs(campaign: Outline) -> tuple[tuple[Cell, int], ...]:
    """Cell and repetition of every run that is sure to be made, in order."""
    return tuple(
        (cell, repetition)
        for repetition in range(1, campaign.repeat.at_least + 1)
        for cell in block(campaign.cells, campaign.seed, repetition)
    )


def total_s(campaign: Campaign) -> float:
    """How long these runs take, with rests, on all testbeds at once: each takes the next run that it may."""
    lengths = {cell.id: campaign.seconds[cell.id] + ALLOWANCE_S for cell in campaign.cells}
    return spread_s(campaign, [(cell.id, lengths[cell.id]) for cell, _ in planned_runs(campaign)])


def spread_s(campaign: Outline, runs: list[tuple[str, float]], busy_s: dict[str, float] | None = None) -> float:
    """How long runs (cell and seconds, in order) take on the campaign's testbeds, which are free after ``busy_s``."""
    free = [((busy_s or {}).get(bed.name, 0.0), bed.name) for bed in campaign.testbeds]
    heapq.heapify(free)
    left = list(runs)
    end = max((at for at, _ in free), default=0.0)
    while left and free:
        at, bed = heapq.heappop(free)
        turn = next((n for n, (cell, _) in enumerate(left) if campaign.pinned.get(cell, bed) == bed), None)
        if turn is None:
            continue
        _, length = left.pop(turn)
        end = max(end, at + length)
        heapq.heappush(free, (at + length + campaign.rest_s, bed))
    return end


def cell_of(campaign: Campaign, text: str) -> Cell:
    """The cell that a text names: all its values, in any order. Raises CampaignError with the nearest."""
    wanted = sorted(part.strip() for part in text.split(","))
    for cell in campaign.cells:
        if cell.id == text or sorted(f"{axis}={value}" for axis, value in cell.values.items()) == wanted:
            return cell
    raise CampaignError(f"{campaign.file}: there is no cell {text!r}{hint(text, [cell.id for cell in campaign.cells])}")


def plan_data(campaign: Campaign) -> dict[str, Plain]:
    """What the campaign is going to do, as JSON for programs."""
    repeat: dict[str, Plain] = {"at_least": campaign.repeat.at_least, "at_most": campaign.repeat.at_most}
    if campaign.repeat.half_width is not None:
        repeat |= {"half_width": campaign.repeat.half_width, "of": campaign.repeat.of}
    return {
        "name": campaign.name,
        "digest": campaign.digest,
        "seed": campaign.seed,
        "repeat": repeat,
        "rest_s": campaign.rest_s,
        "total_s": round(total_s(campaign), 3),
        "testbeds": [bed.name for bed in campaign.testbeds if bed.name],
        "axes": [{"name": axis.name, "values": [value.name for value in axis.values]} for axis in campaign.axes],
        "cells": [
            {
                "cell": cell.id,
                "values": dict(cell.values),
                "labels": dict(cell.labels),
                "set": dict(cell.patch),
                "seconds": campaign.seconds[cell.id],
            }
            for cell in campaign.cells
        ],
        "runs": [{"cell": cell.id, "repetition": repetition} for cell, repetition in planned_runs(campaign)],
    }


def block(cells: Iterable[Cell], seed: int, repetition: int) -> tuple[Cell, ...]:
    """The cells in the order of block ``repetition``, which counts from 1: randomised complete blocks.

    Block r has the r-th run of every cell once, in an order that a seed shuffles, so that what drifts during a campaign
    (temperature, other users, a leak of the generator) meets all cells alike and is no difference between them. The
    shuffle sorts by SHA-256 of seed, block and cell: the same on every machine and with every version of Python, and a
    cell more or less leaves the others in their order.

    >>> cells = [Cell({"load": name}) for name in "abc"]
    >>> [" ".join(cell.values["load"] for cell in block(cells, 7, r)) for r in (1, 2, 3)]
    ['b c a', 'c b a', 'c a b']
    """
    return tuple(sorted(cells, key=lambda cell: sha256(f"{seed}\0{repetition}\0{cell.id}".encode()).digest()))

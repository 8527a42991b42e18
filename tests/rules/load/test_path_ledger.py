"""Where packets were lost, by what was counted at each stage of their way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.fact import Stage
from soakwatch_model.finding import Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.loss import Loss
from soakwatch_rules.load.path_ledger import PathLedger
from soakwatch_rules.signals import readings

S = 10**9
N = 600


@pytest.mark.parametrize(
    ("ledger", "stage"),
    [
        (PathLedger(1000, 1000, 900, 900, 0), Stage.DEVICE),
        (PathLedger(1000, 900, 900, 900, 100), Stage.DEVICE),  # its ring was full: the port never counted them
        (PathLedger(1000, 900, 900, 900, 0), Stage.BEFORE),
        (PathLedger(1000, 1000, 1000, 900, 3), Stage.BEHIND),
        (PathLedger(1000, 900, 900, 900, 0, left=900, arrived=900), Stage.SENDER),
        (PathLedger(1000, 900, 900, 900, 0, left=1000, arrived=900), Stage.WAY_IN),
        (PathLedger(1000, 1000, 1000, 900, 0, left=1000, arrived=900, missed=0), Stage.WAY_OUT),
        (PathLedger(1000, 1000, 1000, 900, 0, left=1000, arrived=900), Stage.BEHIND),  # its drops are not polled
        (PathLedger(1000, 900, 900, 900, None), None),  # nor are the device's: its ring may have been full
        (PathLedger(1000, 900, 900, 900, None, left=1000, arrived=900), None),
        (PathLedger(1000, 900, 900, 900, None, left=900, arrived=900), Stage.SENDER),
        (PathLedger(1000, 1000, 1000, 900, 0, left=1000, arrived=1000), Stage.RECEIVER),
        (PathLedger(1000, 1000, 1000, 900, 0, left=1000, arrived=900, missed=100), Stage.RECEIVER),
        (PathLedger(1000, 970, 940, 900, 0, left=1000, arrived=900), None),  # a third of it at each of three
        (PathLedger(1000, 1000, 1000, 1000, 7), None),  # nothing of the test was lost, whatever else was dropped
    ],
)
def test_the_stage_is_where_most_of_a_loss_lies(ledger: PathLedger, stage: Stage | None) -> None:
    """Sent, left the generator, device in, device out, reached the generator, received."""
    assert ledger.stage is stage


def test_what_the_device_dropped_of_other_traffic_does_not_make_a_loss_its_own() -> None:
    """It dropped 100 packets of some kind, and let out all that came in; 500 of the test were lost behind it."""
    ledger = PathLedger(10_000, 10_000, 10_000, 9_500, 100)
    assert ledger.clear
    assert ledger.behind


def way(*shares: float) -> tuple[tuple[Series, ...], tuple[Series, ...]]:
    """The load and the device's ports for the shares of 1000 packets a second that are counted at the six stages."""
    sent, left, taken_in, let_out, reached, received = (
        np.cumsum(np.full(N, 1000.0 * share)).round() for share in shares
    )
    few = np.arange(N) / 30  # a protocol of the link, both ways

    def port(name: str, direction: str, counts: np.ndarray, target: str) -> Series:
        labels = f"interface={name},direction={direction}"
        return replace(readings("system.network.packets", counts.round(), 1.0, object=labels), target=target)

    def none(name: str, target: str) -> Series:
        labels, counts = f"interface={name},direction=receive", np.zeros(N)
        return replace(readings("system.network.packet.dropped", counts, 1.0, object=labels), target=target)

    load = (
        replace(readings("load.tx.packets", sent, 1.0), target="tg"),
        replace(readings("load.rx.packets", received, 1.0), target="tg"),
        port("p0", "transmit", left + few, "tg"),
        port("p0", "receive", few, "tg"),
        port("p1", "receive", reached + few, "tg"),
        port("p1", "transmit", few, "tg"),
        none("p1", "tg"),
    )
    device = (
        port("e0", "receive", taken_in + few, "dut"),
        port("e0", "transmit", few, "dut"),
        port("e1", "transmit", let_out + few, "dut"),
        port("e1", "receive", few, "dut"),
        none("e0", "dut"),
    )
    return load, device


@pytest.mark.parametrize(
    ("shares", "outcome", "words"),
    [
        ((1, 1, 1, 1, 1, 1), Outcome.PASS, "0 of 598,000 packets lost"),
        ((1, 0.98, 0.98, 0.98, 0.98, 0.98), Outcome.INCONCLUSIVE, "counted as sent, but lost before it left"),
        ((1, 1, 0.98, 0.98, 0.98, 0.98), Outcome.INCONCLUSIVE, "lost before reaching the device, on the path to it"),
        ((1, 1, 1, 0.98, 0.98, 0.98), Outcome.FAIL, "lost by the device: sent"),
        ((1, 1, 1, 1, 0.98, 0.98), Outcome.WARN, "lost after leaving the device, on the path back"),
        ((1, 1, 1, 1, 1, 0.98), Outcome.WARN, "lost after leaving the device, by the generator's receiver"),
    ],
)
def test_loss_names_the_stage(shares: tuple[float, ...], outcome: Outcome, words: str) -> None:
    """The generator's own ports tell its sender from the path, and the path from its receiver."""
    load, device = way(*shares)
    (finding,) = Loss().judge(Case("dut", "", Window(0, N * S), device, load=load))
    assert finding.outcome is outcome, finding.reason
    assert words in finding.reason

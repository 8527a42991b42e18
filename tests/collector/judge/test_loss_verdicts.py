"""What was offered and did not come back, in the verdict of whole runs by the command that users call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from soakwatch.cli.main import run
from soakwatch.record import Record
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample

S = 10**9
T0 = 1_767_225_600
PEER = "peer=192.0.2.1,protocol=icmp"
Columns = Mapping[str, NDArray[np.float64]]
Readings = list[tuple[str, str, float]]
PollFunction = Callable[[float], Readings | None]


def verdict_of(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the verdict of a table or a record."""
    capsys.readouterr()
    code = run(["judge", str(path), "--json", "-", *words])
    return code, json.loads(capsys.readouterr().out)


def table(path: Path, apart: float, columns: Columns) -> Path:
    """A wide table with a reading every so many seconds."""
    n = min(len(column) for column in columns.values())
    rows = (
        ",".join(f"{column[i]:.6g}" if column[i] < 1e6 else f"{column[i]:.0f}" for column in columns.values())
        for i in range(n)
    )
    lines = (f"{T0 + i * apart:.3f},{row}" for i, row in enumerate(rows))
    path.write_text("\n".join([",".join(["time", *columns]), *lines]), encoding="utf-8")
    return path


def recorded(
    folder: Path,
    length: int,
    pollers: Sequence[tuple[str, str, int, PollFunction]],
    phases: Sequence[tuple[str, int]] = (("soak", 0),),
    events: Sequence[Event] = (),
) -> Path:
    """A record of polls of (target, poller, interval, function of the second); one that gives None timed out."""
    with Record.create(folder) as record:
        for target in dict.fromkeys(poller[0] for poller in pollers):
            record.target(target, "generator" if target.startswith("tg") else "dut")
        polls = []
        for target, poller, interval, read in pollers:
            source = record.source(target, poller, poller, interval * S, required=True).id
            for second in range(0, length, interval):
                due, readings = (T0 + second) * S, read(second)
                samples = tuple(Sample(metric, object_, value, due) for metric, object_, value in readings or ())
                outcome = PollOutcome.TIMEOUT if readings is None else PollOutcome.OK
                error = "no answer" if readings is None else None
                polls.append(Poll(source, due, due, 1000, outcome, error, Answer(samples, (), ())))
        polls.sort(key=lambda poll: poll.due_ns)
        for number, (name, begin) in enumerate(phases):
            record.begin_phase(name, (T0 + begin) * S)
            end = phases[number + 1][1] if number + 1 < len(phases) else length
            record.put([poll for poll in polls if (T0 + begin) * S <= poll.due_ns < (T0 + end) * S])
        record.end_phase((T0 + length) * S)
        for event in events:
            record.add_event(event.target, event, "user")
    return folder


def of(verdict: Mapping[str, Any], rule: str, outcome: str) -> list[Mapping[str, Any]]:
    """The findings of a rule with an outcome."""
    return [f for f in verdict["findings"] if (f["rule"], f["outcome"]) == (rule, outcome)]


def noisy(n: int, seed: int = 1) -> NDArray[np.float64]:
    """A thousand a second, as a generator reports it."""
    return 1000 + 30 * np.random.default_rng(seed).standard_normal(n)


DAY = np.arange(8640, dtype=np.float64)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"load.tx.packets": 1e6 * DAY, "load.rx.packets": 1e4 * DAY}, "99 % of 8,638,000,000 packets were lost"),
        ({"load.tx.packets": 1e6 * DAY, "load.rx.packets": 9.8e5 * DAY}, "2 % of 8,638,000,000 packets were lost"),
        ({"load.requests": 950 * DAY, "load.failures": 50 * DAY}, "5 % of 8,638,000 requests failed"),
        (
            {"load.connections.opened": 950 * DAY, "load.connections.failed": 50 * DAY},
            "5 % of 8,638,000 connections failed",
        ),
    ],
)
def test_a_loss_fails_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: Columns, sentence: str
) -> None:
    """What the generator counted as lost or failed for a day is a failure, with the share and the numbers."""
    code, verdict = verdict_of(table(tmp_path / "lost.csv", 10.0, columns), capsys)
    assert (code, verdict["verdict"]) == (1, "fail")
    (finding,) = of(verdict, "loss", "fail")
    assert sentence in finding["reason"]


RUN = np.arange(720.0)  # half a day of minutes
REQUESTS_TOO: Mapping[str, Columns] = {
    "packets alone": {},
    "answers": {"load.request.rate": np.full(720, 50.0)},
    "answers and what was asked": {"load.request.rate": np.full(720, 50.0), "load.offered.rate": np.full(720, 50.0)},
    "answers and failures": {"load.request.rate": np.full(720, 50.0), "load.failures": np.zeros(720)},
    "counted answers": {"load.requests": 3000 * RUN},
    "answers and bytes": {
        "load.request.rate": np.full(720, 50.0),
        "load.tx.bytes": 6e8 * RUN,
        "load.rx.bytes": 6e8 * RUN,
    },
}


@pytest.mark.parametrize("unit", ["bytes", "bit.rate"])
@pytest.mark.parametrize(
    ("shares", "code"),
    [((0.5, 0.5), 3), ((0.1, 0.1), 3), ((0.0, 0.5), 1), ((0.0, 0.0), 0)],
    ids=["half all night", "a tenth all night", "half of it after midnight", "nothing"],
)
def test_what_does_not_come_back_is_seen_of_sizes_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], unit: str, shares: tuple[float, float], code: int
) -> None:
    """iperf3 reports bytes and bits only: where as many came back as were sent for a while, less of them is a loss."""
    kept = np.where(RUN < 360, 1 - shares[0], 1 - shares[1])
    rate = np.full(720, 1e7)
    values = (rate, rate * kept) if unit == "bit.rate" else (np.cumsum(rate), np.cumsum(rate * kept))
    columns = {f"load.tx.{unit}": values[0], f"load.rx.{unit}": values[1]}
    seen, verdict = verdict_of(table(tmp_path / "sizes.csv", 60.0, columns), capsys)
    assert seen == code, verdict["reason"]
    if code == 3:
        assert "what comes back may be of another size" in of(verdict, "loss", "inconclusive")[0]["reason"]


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("beside", REQUESTS_TOO)
def test_packets_that_do_not_come_back_are_seen_whatever_else_the_generator_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], beside: str, share: float
) -> None:
    """A loss, where each packet is known to come back; else what has no counterpart is left open from a tenth on."""
    back = (1 - share) * 6e5 * RUN
    columns = {"load.tx.packets": 6e5 * RUN, "load.rx.packets": back, **REQUESTS_TOO[beside]}
    if "load.rx.bytes" in columns:
        columns["load.rx.bytes"] = 1000 * back
    code, verdict = verdict_of(table(tmp_path / "lost.csv", 60.0, columns), capsys)
    if beside in {"packets alone", "answers and bytes"}:
        assert (code, verdict["verdict"]) == (1, "fail")
        assert f"{100 * share:g} % of 430,800,000 packets were lost" in of(verdict, "loss", "fail")[0]["reason"]
        return
    outcome = "warn" if share < 0.1 else "inconclusive"
    assert code == {"warn": 0, "inconclusive": 3}[outcome]
    (finding,) = [f for f in of(verdict, "loss", outcome) if f["metric"] == "load.rx.packets"]
    assert f"{100 * share:g} % of 431,400,000 packets sent have no counterpart" in finding["reason"]
    assert ("load.lost.packets" in finding["settle"]) == (outcome == "inconclusive")


def test_what_is_in_doubt_is_no_warning_where_half_of_the_run_was_not_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hundredth without a counterpart only warns; that nothing was read any more keeps the run from passing."""

    def generator(second: float) -> Readings:
        sent = 1000 * second
        read = [("load.tx.packets", "", sent), ("load.rx.packets", "", 0.99 * sent)] if second < HOURS / 2 else []
        return [*read, ("load.request.rate", "", 50.0)]

    pollers = [("tg", "csv", 10, generator), ("dut", "icmp", 60, pinged(1e9))]
    code, verdict = verdict_of(recorded(tmp_path / "run", HOURS, pollers), capsys)
    assert code == 3
    assert [f for f in of(verdict, "loss", "inconclusive") if f["metric"] == "load.rx.packets"]


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_packets_that_came_back_before_are_lost_when_they_do_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], share: float
) -> None:
    """Where each packet came back for an hour it is one for one, requests or not, and the size need not be known."""
    back = np.concatenate([6e5 * RUN[:120], 6e5 * 119 + (1 - share) * 6e5 * RUN[1:601]])
    columns = {"load.tx.packets": 6e5 * RUN, "load.rx.packets": back, "load.request.rate": np.full(720, 50.0)}
    code, verdict = verdict_of(table(tmp_path / "lost.csv", 60.0, columns), capsys)
    assert (code, verdict["verdict"]) == (1, "fail")
    assert of(verdict, "loss", "fail")


@pytest.mark.parametrize(
    ("asked", "answered", "word"),
    [
        ("load.offered.rate", "load.request.rate", "requests"),
        ("load.offered.packet.rate", "load.rx.packet.rate", "packets"),
    ],
)
@pytest.mark.parametrize("share", [0.01, 0.2, 0.5])
def test_what_was_asked_of_a_generator_and_did_not_happen_is_left_open_from_a_tenth_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: str, answered: str, word: str, share: float
) -> None:
    """Whether it was not sent or not answered nobody says; a hundredth less is how generators are."""
    columns = {asked: np.full(720, 5000.0), answered: (1 - share) * 5000 + noisy(720) * 0.01}
    code, verdict = verdict_of(table(tmp_path / "asked.csv", 60.0, columns), capsys)
    if share < 0.1:
        assert (code, verdict["verdict"]) == (0, "pass")
        return
    assert code == 3
    (finding,) = of(verdict, "loss", "inconclusive")
    assert f"of 215,700,000 {word} that the generator was to send" in finding["reason"]


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_each_generator_has_its_own_account(tmp_path: Path, capsys: pytest.CaptureFixture[str], share: float) -> None:
    """Packets that one loses are lost, also where another is answered all that it asks."""
    pollers = [
        ("dut", "icmp", 60, pinged(1e9)),
        ("tg", "trex", 10, sends(share=1 - share)),
        ("tg-web", "k6", 10, lambda second: [("load.requests", "", 50 * second), ("load.failures", "", 0)]),
    ]
    code, verdict = verdict_of(recorded(tmp_path / "two", HOURS, pollers), capsys)
    assert (code, verdict["verdict"]) == (1, "fail")
    assert "packets were lost" in of(verdict, "loss", "fail")[0]["reason"]


@pytest.mark.parametrize(("sent", "came"), [(3.0, 5.0), (5.0, 3.0)], ids=["downloads", "uploads"])
def test_questions_and_answers_of_another_size_are_no_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sent: float, came: float
) -> None:
    """What a client asks and gets is not the same packets: their sizes tell."""
    small, large = (90.0, 1300.0) if came > sent else (1300.0, 60.0)
    columns = {
        "load.tx.packets": sent * 3000 * RUN,
        "load.rx.packets": came * 3000 * RUN,
        "load.tx.bytes": small * sent * 3000 * RUN,
        "load.rx.bytes": large * came * 3000 * RUN,
        "load.requests": 3000 * RUN,
        "load.failures": 0 * RUN,
    }
    code, verdict = verdict_of(table(tmp_path / "web.csv", 60.0, columns), capsys)
    assert (code, verdict["verdict"]) == (0, "pass")


@pytest.mark.parametrize("share", [0.0, 1e-5, 5e-5])
def test_next_to_no_loss_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str], share: float) -> None:
    """A few packets in a hundred thousand are within the limit."""
    columns = {"load.tx.packets": 1e6 * DAY, "load.rx.packets": np.floor((1 - share) * 1e6 * DAY)}
    code, verdict = verdict_of(table(tmp_path / "well.csv", 10.0, columns), capsys)
    assert (code, verdict["verdict"]) == (0, "pass")
    assert of(verdict, "loss", "pass")


@pytest.mark.parametrize("offered", [False, True])
@pytest.mark.parametrize(("apart", "hours", "silent_s"), [(10.0, 24.0, 7200.0), (1.0, 1.0, 60.0), (60.0, 24.0, 1800.0)])
def test_answers_that_stop_for_good_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], apart: float, hours: float, silent_s: float, *, offered: bool
) -> None:
    """Zero answers to the end of the run: a failure, with its begin, and no decline by a few parts in a thousand."""
    n = int(hours * 3600 / apart)
    rate = noisy(n)
    rate[-int(silent_s / apart) :] = 0
    columns = {"load.request.rate": rate} | ({"load.offered.rate": np.full(n, 1000.0)} if offered else {})
    code, verdict = verdict_of(table(tmp_path / "stopped.csv", apart, columns), capsys)
    assert (code, verdict["verdict"]) == (1, "fail")
    (finding,) = of(verdict, "loss", "fail")
    assert "no request was answered from" in finding["reason"]
    assert "to the end of the run" in finding["reason"]
    assert finding["numbers"]["longest_stop_s"] == pytest.approx(silent_s, abs=2 * apart)
    assert len([cause for cause in verdict["causes"] if cause["outcome"] == "fail"]) == 1


def test_a_client_that_mostly_waits_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A database client of six minutes of which the last 325 s are zero: the level is that of the 17 s before."""
    rate = np.random.default_rng(2).poisson(1500, 342).astype(np.float64)
    rate[17:] = 0
    code, verdict = verdict_of(table(tmp_path / "client.csv", 1.0, {"load.request.rate": rate}), capsys)
    assert code == 1
    assert "5 min 25 s" in of(verdict, "loss", "fail")[0]["reason"]


def test_a_load_that_is_turned_down_is_left_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Answers that sink step by step and then end may be the generator's end; with users at zero they are."""
    rate = noisy(3600)
    rate[3300:3420] *= np.linspace(1, 0, 120)
    rate[3420:] = 0
    code, verdict = verdict_of(table(tmp_path / "down.csv", 1.0, {"load.request.rate": rate}), capsys)
    assert code == 3
    said = of(verdict, "loss", "inconclusive")[0]["reason"]
    assert said.startswith("the rate of answers fell to 0 % step by step until ")
    assert said.endswith(" to the end of the run; the generator was probably turned down")
    users = np.where(rate > 0, 50.0, 0.0)
    columns = {"load.request.rate": rate, "load.users": users}
    verdict = verdict_of(table(tmp_path / "users.csv", 1.0, columns), capsys)[1]
    assert of(verdict, "loss", "pass")
    columns["load.users"] = np.full(3600, 50.0)
    code, verdict = verdict_of(table(tmp_path / "wait.csv", 1.0, columns), capsys)
    assert code == 1
    assert of(verdict, "loss", "fail"), "its users went on"


def pinged(dead: float, back: float = 1e9) -> PollFunction:
    """A peer that answers the ping of each poll, except for a time."""
    sent = lost = 0

    def poll(second: float) -> Readings:
        nonlocal sent, lost
        gone = dead <= second < back
        sent, lost = sent + 1, lost + gone
        return [("reach.up", PEER, 0 if gone else 1), ("reach.sent", PEER, sent), ("reach.lost", PEER, lost)]

    return poll


def polled(
    dead: float = 1e9, back: float = 1e9, *, carried: float = 1.0, out: float = 1.0, stop: float = 1e9
) -> PollFunction:
    """A device with two ports; ``carried`` is the share of 1000 packets a second that enters, ``out`` that leaves."""

    def poll(second: float) -> Readings | None:
        if dead <= second < back:
            return None
        through = 1000 * min(second, stop)
        port = "system.network.packets"
        return [
            ("system.uptime", "", 5000 + second),
            ("system.network.packet.dropped", "interface=e0,direction=receive", 0),
            (port, "interface=e0,direction=receive", int(carried * through)),
            (port, "interface=e0,direction=transmit", 7),
            (port, "interface=e1,direction=transmit", int(out * through)),
            (port, "interface=e1,direction=receive", 9),
        ]

    return poll


def sends(stop: float = 1e9, share: float = 1.0) -> PollFunction:
    """A generator of 1000 packets a second of which nothing comes back from a time on."""
    return lambda second: [
        ("load.tx.packets", "", int(1000 * second)),
        ("load.rx.packets", "", int(share * 1000 * min(second, stop))),
    ]


HOURS = 4 * 3600


@pytest.mark.parametrize(
    ("pollers", "rule", "sentence"),
    [
        ([("dut", "icmp", 10, pinged(HOURS - 120))], "hang", "to the end of the run"),
        ([("dut", "icmp", 10, pinged(4000, 4060))], "hang", "did not answer from"),
        ([("dut", "snmp", 60, polled(HOURS - 600))], "hang", "has not answered since"),
        (
            [("dut", "snmp", 60, polled(HOURS - 600)), ("tg", "csv", 10, sends(HOURS - 600))],
            "hang",
            "no forwarding for",
        ),
        (
            [("dut", "snmp", 60, polled(HOURS - 600)), ("tg", "csv", 10, sends())],
            "management_isolation",
            "while traffic was forwarded",
        ),
        (
            [("dut", "snmp", 60, polled(stop=HOURS / 2)), ("tg", "csv", 10, sends(HOURS / 2))],
            "loss",
            "almost no packets came back from",
        ),
    ],
    ids=["probed", "probed, for a minute", "polled", "polled, with a load", "management only", "forwarding only"],
)
def test_dead_is_dead(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    pollers: Sequence[tuple[str, str, int, PollFunction]],
    rule: str,
    sentence: str,
) -> None:
    """A device that answers nothing, or nothing of one kind any more, fails the run, and it is reported once."""
    code, verdict = verdict_of(recorded(tmp_path / "dead", HOURS, pollers), capsys)
    assert (code, verdict["verdict"]) == (1, "fail")
    assert sentence in of(verdict, rule, "fail")[0]["reason"]
    assert len([cause for cause in verdict["causes"] if cause["outcome"] == "fail"]) == 1


def test_a_silence_in_the_middle_warns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Five minutes without an answer, of which nothing else tells, are no death."""
    pollers = [("dut", "snmp", 60, polled(4000, 4300))]
    code, verdict = verdict_of(recorded(tmp_path / "silent", HOURS, pollers), capsys)
    assert (code, verdict["verdict"]) == (0, "pass")
    assert of(verdict, "hang", "warn")


@pytest.mark.parametrize(
    ("out", "share", "outcome", "sentence"),
    [
        (1.0, 0.97, "warn", "lost after leaving the device, by the path or the generator's receiver"),
        (0.97, 0.97, "fail", "device in 14,3"),
        (1.0, 0.5, "inconclusive", "lost after leaving the device"),
        (0.0, 1.0, "inconclusive", "the device's interfaces carried less than 10 % of it"),
    ],
    ids=["behind the device", "in the device", "half of it behind the device", "a generator that lies"],
)
def test_who_lost_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], out: float, share: float, outcome: str, sentence: str
) -> None:
    """Sent, device in, device out, received: of the four numbers follows who is to blame."""
    pollers = [("dut", "snmp", 60, polled(out=out)), ("tg", "csv", 10, sends(share=share))]
    code, verdict = verdict_of(recorded(tmp_path / "run", HOURS, pollers), capsys)
    assert code == {"warn": 0, "fail": 1, "inconclusive": 3}[outcome]
    (finding,) = of(verdict, "loss", outcome)
    assert sentence in finding["reason"]
    if out > 0:
        assert {"sent", "device_in", "device_out", "received", "device_dropped"} <= finding["numbers"].keys()


@pytest.mark.parametrize(("at", "share", "code"), [(2, 1.0, 0), (2, 0.9999, 1), (7200, 1.0, 1)])
def test_one_drop_two_seconds_after_the_start_of_a_load_of_which_nothing_was_lost_warns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at: int, share: float, code: int
) -> None:
    """It was none of the test's packets: an address was not resolved yet. Later, or with a loss, nothing says so."""

    def device(second: float) -> Readings:
        dropped = ("system.network.packet.dropped", "interface=e0,direction=receive", int(second > at))
        return [dropped if each[0] == dropped[0] else each for each in polled()(second) or []]

    pollers = [("dut", "snmp", 10, device), ("tg", "csv", 10, sends(share=share))]
    seen, verdict = verdict_of(recorded(tmp_path / "run", HOURS, pollers), capsys)
    assert seen == code, verdict["reason"]
    (finding,) = [f for f in verdict["findings"] if f["rule"] == "drops" and f["outcome"] in {"warn", "fail"}]
    assert ("none was of the test" in finding["reason"]) is (code == 0)


@pytest.mark.parametrize("seed", range(6))
def test_a_failover_at_which_nothing_was_lost_does_not_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    """The generator goes on at a slow, uneven rate, and slower still in the next phase: no request failed."""
    rng = np.random.default_rng(seed)
    rate = rng.choice([16.0, 20.0, 24.0], 1200)
    rate[700:] = rng.choice([6.0, 8.0, 10.0, 16.0], 500)
    answered = np.concatenate([[0.0], np.cumsum(rate)])

    def generator(second: float) -> Readings:
        at = int(second)
        offered = 20.0 if second < 700 else 10.0
        return [
            ("load.request.rate", "", float(rate[min(at, 1199)])),
            ("load.offered.rate", "", offered),
            ("load.failures", "", 0.0),
            ("load.requests", "", float(int(answered[at]))),
        ]

    event = Event("failover", "dut", "", (T0 + 600) * S, (T0 + 600) * S, {}, {}, (T0 + 610) * S)
    phases = (("baseline", 0), ("soak", 100), ("recovery", 700))
    pollers = [("tg", "k6", 1, generator), ("dut", "icmp", 1, pinged(1e9))]
    code, verdict = verdict_of(recorded(tmp_path / "run", 1200, pollers, phases, (event,)), capsys)
    assert not of(verdict, "event_impact", "fail"), of(verdict, "event_impact", "fail")[0]["reason"]
    assert code != 1
    (finding,) = [f for f in verdict["findings"] if f["rule"] == "event_impact"]
    assert "not recovered" not in finding["reason"]


def test_what_was_announced_and_what_is_overload_is_no_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half a minute of nothing in an announced failover, and half of everything lost under stress: neither fails."""

    def generator(second: float) -> Readings:
        calm = min(second, 5000) + max(0.0, second - 5030) if second > 5000 else second
        over = max(0.0, min(second, 9000) - 8000)
        return [("load.tx.packets", "", int(1000 * (second + over))), ("load.rx.packets", "", int(1000 * calm))]

    event = Event("failover", "dut", "", (T0 + 4999) * S, (T0 + 5001) * S, {}, {"outage": 1}, (T0 + 5060) * S)
    phases = (("baseline", 0), ("soak", 2000), ("stress", 8000), ("recovery", 9000))
    pollers = [("tg", "csv", 10, generator), ("dut", "snmp", 60, polled())]
    verdict = verdict_of(recorded(tmp_path / "told", HOURS, pollers, phases, (event,)), capsys)[1]
    assert of(verdict, "loss", "pass")
    untold = verdict_of(recorded(tmp_path / "untold", HOURS, pollers, phases), capsys)[1]
    assert not of(untold, "loss", "pass")

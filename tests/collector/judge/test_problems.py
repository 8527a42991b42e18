"""What went wrong, as all surfaces tell it: in one order, once a cause, with its moment, and who shares it."""

from __future__ import annotations

from dataclasses import replace

from soakwatch.judge.problems import fail_words, problems_of
from soakwatch_model.fact import Gone, Lost, Onset
from soakwatch_model.finding import Finding, Mark, Outcome
from soakwatch_model.window import Phase, Window
from soakwatch_rules.causes import causes

S = 10**9
BEGIN = 1_795_000_000 * S
RUN = Window(BEGIN, BEGIN + 3600 * S)
SOAK = Phase("soak", Window(BEGIN + 600 * S, RUN.end_ns))


def finding(rule: str, at_s: int | None = None, end_s: int | None = None, **more: object) -> Finding:
    """A failure of a gateway, at a moment or without one."""
    marks = () if at_s is None else (Mark(BEGIN + at_s * S, None if end_s is None else BEGIN + end_s * S, "here"),)
    fields = {"target": "gw", "metric": "", "object": "", **more}
    return Finding(rule, 1, Outcome.FAIL, window=RUN, definition="", reason="", samples=3600, marks=marks, **fields)  # type: ignore[arg-type]


def sentence_of(*findings: Finding) -> str:
    """The sentence of these failures, at 80 requests a second."""
    return fail_words(problems_of(findings, causes(findings), Outcome.FAIL), RUN, (SOAK,), "80 requests/s")


def test_a_loss_stands_behind_the_crash_that_made_it() -> None:
    crash = finding("process_restart", 1200, 1203, metric="process.up", object="process=authd,instance=0")
    loss = finding("loss", 1199, 1203, metric="load.requests", facts=(Lost(count=96.0, what="requests"),))
    at = "11:26:40 UTC (20 min in, at 80 requests/s in phase soak)"
    assert sentence_of(loss, crash) == f"authd on gw restarted at {at}; 96 requests lost."


def test_what_never_came_back_is_not_restarted_and_all_that_was_lost_since_is_its_effect() -> None:
    gone_ns = BEGIN + 1200 * S
    exit_ = finding("process_restart", 1200, metric="process.up", object="process=authd", facts=(Gone(gone_ns),))
    loss = finding("loss", 1205, 3600, metric="load.requests", facts=(Lost(count=5000.0, what="requests"),))
    later = finding("overload_loss", 3000, 3100, metric="load.requests")
    (one,) = problems_of((exit_, loss, later), causes((exit_, loss, later)), Outcome.FAIL)
    assert one.finding is exit_
    assert [effect.rule for effect in one.effects] == ["loss", "overload_loss"]
    assert "authd on gw exited and is still down at 11:26:40 UTC" in sentence_of(exit_, loss, later)


def test_a_leak_is_told_since_its_onset_and_without_one_over_its_time() -> None:
    whole = finding(
        "growth",
        metric="process.memory.usage",
        object="process=snort",
        measured=2.0**20,
        limit=2.0**18,
        unit="By/h",
    )
    since = replace(whole, facts=(Onset(BEGIN + 1800 * S),))
    said = "memory of snort on gw has grown by 1 MiB/h since 11:36:40 UTC (limit 256 KiB/h)"
    assert sentence_of(since) == f"{said}, at 80 requests/s in phase soak."
    assert sentence_of(whole).startswith("memory of snort on gw has grown by 1 MiB/h over 1 h (limit 256 KiB/h)")


def test_what_devices_share_is_told_once() -> None:
    """Nineteen devices behind one generator lost the same; the twentieth lost a process."""
    shared = [
        finding("loss", 2000, 2010, metric="load.requests", target=f"fw{n:02d}", measured=0.02) for n in range(19)
    ]
    dead = finding("process_restart", 1990, metric="process.up", object="process=svc", target="edge04")
    every = (*shared, dead)
    first, second = problems_of(every, causes(every), Outcome.FAIL)
    assert (first.finding, first.shared) == (dead, "")
    assert (len(second.targets), second.shared) == (19, "18 more devices share it")


def test_the_others_are_named_behind_the_first_and_counted() -> None:
    names = ("a", "b", "c", "d", "e")
    dead = [finding("saturation", 1000 + 500 * n, metric="x", object=f"table={name}") for n, name in enumerate(names)]
    text = sentence_of(*dead)
    assert text.startswith("a on gw ran full at 11:23:20 UTC (16 min 40 s in, at 80 requests/s in phase soak). Also: ")
    assert text.endswith("Also: b on gw ran full at 11:31:40 UTC; c on gw ran full at 11:40:00 UTC; and 2 more.")

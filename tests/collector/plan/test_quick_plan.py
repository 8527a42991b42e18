"""The plan that a few words on the command line make."""

from __future__ import annotations

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.plan import plan_from_text, plan_text, quick_plan


def test_a_plan_of_a_few_words() -> None:
    """Targets, processes and times on the command line make the plan that a file would."""
    plan = quick_plan(
        ["local"], ["nginx", "snort*", "pid:12", "cmdline:a b", "pidfile:/run/x.pid"], "500ms", "30m", None
    )
    assert plan.duration_s == 1800.0
    assert plan.name.startswith("local-nginx-snort")
    assert [watch.how for watch in plan.targets[0].processes] == ["name", "name", "pid", "cmdline", "pidfile"]
    assert plan.targets[0].sources[0].config.interval == 0.5
    assert plan_from_text(plan_text(plan), "record") == plan
    assert quick_plan([], interval=0.25, duration=90.0, name="short").duration_s == 90.0


@pytest.mark.parametrize(
    ("targets", "processes", "interval", "duration", "sentence"),
    [
        (["ssh://u:pw@h"], [], None, "1m", "the target ssh://h holds a password: remove it, and give it by a key"),
        (["locl"], [], None, "1m", "the target 'locl' is no address; did you mean 'local'?: write local, snmp://HOST"),
        (["snnp://h"], [], None, "1m", "the target 'snnp' cannot be polled: there is no such poller"),
        (["ssh://"], [], None, "1m", "the target ssh:// names no host"),
        (["ssh://h:99999"], [], None, "1m", "the target ssh://… is not a valid address: check host and port"),
        (["local"], ["pid:x"], None, "1m", "command line: pid: expected a whole number, found 'x'"),
        (
            ["local"],
            [],
            "1",
            "1m",
            "command line: interval: '1' is not a duration: write a number with a unit, such as",
        ),
        (["local"], [], "10ms", "1m", "command line: interval: '10ms' is out of bounds: at least 200ms"),
        (["local"], [], None, "0s", "command line: duration: '0s' is not a duration of a run"),
    ],
)
def test_bad_words_on_the_command_line(
    targets: list[str], processes: list[str], interval: str | None, duration: str, sentence: str
) -> None:
    """What cannot be run from the command line is one sentence, without places and without passwords."""
    with pytest.raises(PlanError) as caught:
        quick_plan(targets, processes, interval, duration)
    assert str(caught.value).startswith(sentence)
    assert "pw" not in str(caught.value)


def test_a_process_in_one_word_is_the_same_in_a_file() -> None:
    """``cmdline:REGEX``, ``pid:N`` and ``pidfile:FILE`` are no names to wait for in vain."""
    words = ["nginx", "cmdline:java .*broker", "pid:12", "pidfile:/run/bgpd.pid"]
    listed = ", ".join(f'"{word}"' for word in words)
    text = f"duration: 1m\ntargets: {{local: {{sources: [local]}}}}\nwatch: {{processes: [{listed}]}}\n"
    assert (
        plan_from_text(text, "p.yaml").targets[0].processes
        == quick_plan(["local"], words, duration="1m").targets[0].processes
    )

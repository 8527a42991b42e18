"""The questions of ``soakwatch init``: each answer is tried in a plan at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import split
from urllib.parse import quote, urlencode

import click

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import loads
from soakwatch.core.secrets import reference
from soakwatch.core.units import plan_seconds, seconds
from soakwatch.plan import plan_from_text, quick_plan
from soakwatch.plan.commented_plan import draft

KINDS = {
    "1": "a process or service on this machine, or this machine as a whole",
    "2": "a Linux host, by SSH (nothing is installed there)",
    "3": "a router, switch, firewall or VPN box, by SNMP",
    "4": "a network system by its command line, over SSH",
    "5": "something else, by its address (soakwatch pollers lists what there is)",
}
LOADS = {
    "none": "nothing that the run knows of",
    "iperf3": "a client that the run starts and drives by its phases",
    "trex": "a TRex server, read",
    "k6": "its output file (k6 run --out json=FILE), read while it is written",
    "jmeter": "its result file (jmeter -l FILE), read while it is written",
    "locust": "its history (locust --csv NAME: NAME_stats_history.csv), read while it is written",
    "wrk": "the text that its runs append to a file",
    "command": "a command of your own that prints figures",
}
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers so far, with defaults for the rest."""

    addresses: tuple[str, ...] = ("local",)
    processes: tuple[str, ...] = ()
    duration: str = "24h"
    interval: str = "1s"
    phases: str = ""
    generator: str = ""
    drives: bool = False
    """Whether the run controls the generator's load."""

    @property
    def is_empty(self) -> bool:
        return self == Answers()

    @property
    def text(self) -> str:
        """The plan's text. Raises PlanError."""
        name = quick_plan(self.addresses, self.processes, self.interval, self.duration).name
        return draft(name, self.duration, self.interval, self.processes, self.addresses, self.phases, self.generator)


class StoppedError(Exception):
    """The user ended the questions; ``answers`` are those given."""

    def __init__(self, answers: Answers) -> None:
        super().__init__("stopped")
        self.answers = answers


def ask() -> Answers:
    """Ask all questions. Raises StoppedError with the answers so far on Ctrl-C or Ctrl-D."""
    answers = Answers()
    try:
        for question in (_device, _processes, _generator, _length, _phases, _interval):
            answers = question(answers)
    except click.Abort:
        raise StoppedError(answers) from None
    return answers


def _device(answers: Answers) -> Answers:
    click.echo("What is tested?")
    for number, words in KINDS.items():
        click.echo(f"  {number}  {words}")
    kind = click.prompt("Number", type=click.Choice(list(KINDS)), default="1", show_choices=False)
    if kind == "1":
        return answers
    if kind == "3":
        return _snmp(answers)
    if kind == "5":
        return _asked("Address, such as prometheus://fw1:9100 or agent://fw1", _addresses)
    host = _asked_text("Host, as user@host or user@host:port", lambda text: f"ssh://{text}")
    words = "Private key: a file, config for ~/.ssh/config, or empty for the keys of ~/.ssh and the SSH agent"
    return _asked(words, lambda key: replace(answers, addresses=(_ssh(host, key.strip()),)), default="")


def _ssh(host: str, key: str) -> str:
    more = {"ssh_config": "true"} if key == "config" else {"key": key} if key else {}
    return f"ssh://{host}" + (f"?{urlencode(more, safe='/~:')}" if more else "")


def _snmp(answers: Answers) -> Answers:
    host = _asked_text("Host", lambda text: f"snmp://{text}?version=2c&community=env:SNMP_COMMUNITY")
    version = click.prompt("SNMP version", type=click.Choice(["2c", "3"]), default="2c")
    if version == "2c":
        query = {"version": "2c", "community": _reference("Community", "env:SNMP_COMMUNITY")}
        return replace(answers, addresses=(_url(host, query),))
    auth, priv = _reference("Authentication password", "env:SNMP_AUTH"), _reference("Privacy password", "env:SNMP_PRIV")
    query = {"version": "3", "auth": auth, "priv": priv}
    return _asked("User", lambda user: replace(answers, addresses=(_url(host, {**query, "user": user.strip()}),)))


def _url(host: str, query: dict[str, str]) -> str:
    return f"snmp://{host}?{urlencode(query, safe='/:', quote_via=quote)}"


def _processes(answers: Answers) -> Answers:
    if not answers.addresses[0].startswith(("local", "ssh:", "agent:")):
        return answers
    words = "Processes to watch: names or globs, separated by spaces (empty: none)"
    return _asked(words, lambda text: replace(answers, processes=tuple(text.split())), default="")


def _generator(answers: Answers) -> Answers:
    click.echo("What loads it?")
    known = [name for name in LOADS if name == "none" or name in loads()]
    for name in known:
        click.echo(f"  {name:8}{LOADS[name]}")
    load = click.prompt("Load", type=click.Choice(known), default="none", show_choices=False)
    if load == "none":
        return replace(answers, generator="", drives=False)
    if load == "iperf3":
        return _iperf3(answers)
    if load == "trex":
        return _asked("Host of its server", lambda host: _loaded(answers, load, f"{{host: {host.strip()!r}}}"))
    if load == "command":
        words = "Command line that prints one figure of the catalogue or more a second (soakwatch loads command)"
        return _asked(words, lambda line: _loaded(answers, load, f"{{run: [{', '.join(map(repr, split(line)))}]}}"))
    return _asked("File that it writes", lambda file: _loaded(answers, load, f"{{file: {file.strip()!r}}}"))


def _loaded(answers: Answers, load: str, keys: str) -> Answers:
    return replace(answers, generator=f"{load}: {keys}", drives=False)


def _iperf3(answers: Answers) -> Answers:
    def sending(host: str, rate: str) -> Answers:
        source = f"iperf3: {{drive: true, server: {host!r}, rate: {rate}}}"
        return replace(answers, generator=source, drives=True)

    host = _asked_word("Host of the iperf3 server to which the run sends", lambda text: sending(text, "100M"))
    return _asked("Rate in bits per second", lambda rate: sending(host, repr(rate.strip())), default="100M")


def _length(answers: Answers) -> Answers:
    words = "Length, such as 24h, 90 minutes or overnight"
    return _asked(words, lambda text: replace(answers, duration=plan_seconds(seconds(text))), default="24h")


def _phases(answers: Answers) -> Answers:
    total_s = seconds(answers.duration)
    if total_s < _HOUR:
        return answers
    edge_s = 1800.0 if total_s >= 12 * _HOUR else 600.0
    words = f"Begin with a baseline and end with a recovery of {plan_seconds(edge_s)} each"
    if not click.confirm(words, default=bool(answers.generator)):
        return answers
    soak = plan_seconds(total_s - 2 * edge_s)
    edge = plan_seconds(edge_s)
    shown = f"[{{baseline: {edge}}}, {{soak: {soak}}}, {{recovery: {edge}}}]"
    if answers.drives:  # the device alone, then under load, then alone again
        shown = f"[{{baseline: {{for: {edge}, load: 0%}}}}, {{soak: {soak}}}, {{recovery: {{for: {edge}, load: 0%}}}}]"
    return _tried(replace(answers, phases=shown))


def _interval(answers: Answers) -> Answers:
    words = "Time between polls"
    usual = "10s" if answers.addresses[0].startswith("snmp:") else "1s"
    return _asked(words, lambda text: replace(answers, interval=plan_seconds(seconds(text))), default=usual)


# --- asking --------------------------------------------------------------------------------------------------------


def _addresses(text: str) -> Answers:
    return Answers(addresses=tuple(text.split()))


def _asked(words: str, put: Callable[[str], Answers], default: str | None = None) -> Answers:
    """Ask until the answer makes a valid plan."""

    def tried(text: str) -> Answers:
        try:
            return _tried(put(text))
        except (PlanError, ValueError) as error:
            raise click.BadParameter(_without_place(error)) from None

    given: Answers = click.prompt(words, default=default, value_proc=tried, show_default=default not in {None, ""})
    return given


def _asked_text(words: str, address: Callable[[str], str]) -> str:
    """Ask for a host until its address is valid."""
    return _asked_word(words, lambda text: Answers(addresses=(address(text),)))


def _asked_word(words: str, put: Callable[[str], Answers]) -> str:
    """Ask for a word until it makes a valid plan."""

    def tried(text: str) -> str:
        try:
            _tried(put(text.strip()))
        except (PlanError, ValueError) as error:
            raise click.BadParameter(_without_place(error)) from None
        return text.strip()

    given: str = click.prompt(words, value_proc=tried)
    return given


def _reference(words: str, default: str) -> str:
    """Ask where a secret is kept; the secret itself is rejected."""

    def tried(text: str) -> str:
        try:
            reference(text)
        except ValueError:
            raise click.BadParameter("write env:NAME or file:PATH: a secret itself does not go into a plan") from None
        return text

    given: str = click.prompt(f"{words}, as env:NAME or file:PATH", default=default, value_proc=tried)
    return given


def _tried(answers: Answers) -> Answers:
    """Return the answers if they make a valid plan. Raises PlanError."""
    plan_from_text(answers.text, "plan.yaml")
    return answers


def _without_place(error: Exception) -> str:
    """The error without its line in a plan that the user has not seen yet."""
    first = error.problems[0] if isinstance(error, PlanError) and error.problems else str(error)
    head, _, rest = first.partition(": ")
    return rest if rest and (head == "command line" or Path(head.partition(":")[0]).suffix == ".yaml") else first

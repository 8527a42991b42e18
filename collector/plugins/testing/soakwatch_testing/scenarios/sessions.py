"""Routing sessions with peers: flaps that are read, that fall between two readings, announced or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from soakwatch_model.case import Case, Ledger, Silence
from soakwatch_model.event import Event
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.signals import readings
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import Floats, times

S = 10**9
_OLD_S = 86_400.0
_PEERS = tuple(f"protocol=bgp,peer=10.0.0.{n},context=default" for n in (2, 3, 4))
_GROUP = "protocol=vrrp,peer=51,context=north"


@dataclass
class Peers:
    """Three sessions being built: when each was down, and what else is reported."""

    t: Floats
    rng: np.random.Generator
    down: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    unlisted: set[str] = field(default_factory=set)
    bare: bool = False
    events: list[Event] = field(default_factory=list)
    silence: tuple[float, float] | None = None
    prefixes: Floats | None = None
    master: Floats | None = None

    @property
    def end(self) -> float:
        """The end of the run in seconds."""
        return float(self.t[-1] + self.t[1] - self.t[0])

    def moment(self, low: float = 0.3, high: float = 0.6) -> float:
        """A random second between two shares of the run."""
        return float(self.rng.uniform(low, high)) * self.end

    def flap(self, at_s: float, seconds: float, peer: int = 0) -> None:
        """A session goes down, and comes back after a while."""
        self.down.setdefault(_PEERS[peer], []).append((at_s, at_s + seconds))

    def announce(self, kind: str, at_s: float, within_s: float | None, **expect: int) -> None:
        """A planned event; without deadline and expectation one that merely happened."""
        deadline = None if within_s is None else round((at_s + within_s) * S)
        told = {name.replace("_", "."): number for name, number in expect.items()}
        self.events.append(Event(kind, "dut", "", round(at_s * S), None, {}, told, deadline))

    def series(self) -> tuple[Series, ...]:
        """State, uptime and flap count of each session, prefixes of the first, and the VRRP role, as read."""
        apart = float(self.t[1] - self.t[0])
        made: list[Series] = []
        asked = np.ones(self.t.size, dtype=bool)
        if self.silence is not None:
            asked = ~((self.t >= self.silence[0]) & (self.t < self.silence[1]))
        for peer in _PEERS:
            spans = self.down.get(peer, [])
            up = np.ones(self.t.size)
            since = np.full(self.t.size, -_OLD_S)
            count = np.full(self.t.size, 3.0)
            for begin, end in spans:
                up[(self.t >= begin) & (self.t < end)] = 0
                since[self.t >= end] = end
                count[self.t >= end] += 1
            listed = asked & ((up > 0) | (peer not in self.unlisted))
            every = [("network.session.up", up)]
            if not self.bare:
                every += [("network.session.uptime", self.t - since), ("network.session.flaps", count)]
            for metric, value in every:
                whole = readings(metric, value, apart, object=peer)
                made.append(replace(whole, time_ns=whole.time_ns[listed], value=whole.value[listed]))
        prefixes = np.full(self.t.size, 800.0) if self.prefixes is None else self.prefixes
        made.append(readings("network.session.prefixes", prefixes, apart, object=f"{_PEERS[1]},family=ipv4 unicast"))
        master = np.full(self.t.size, 2.0) if self.master is None else self.master
        made.append(readings("network.session.role", master, apart, object=_GROUP))
        return tuple(made)


def sessions(name: str, happens: Callable[[Peers], None]) -> Scenario:
    """Four hours of three sessions, to which something happens."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        peers = Peers(times(hours, apart), np.random.default_rng(seed))
        happens(peers)
        silences: tuple[Silence, ...] = ()
        if peers.silence is not None:
            begin, end = peers.silence
            window = Window(round(begin * S), round(end * S))
            silences = (Silence(window, {"timeout": round((end - begin) / apart)}),)
        due = peers.t.size
        ledger = Ledger("dut", "dut/snmp", apart, due, due, {}, None, silences=silences)
        window = Window(0, round(peers.end * S))
        case = Case("dut", "", window, peers.series(), events=tuple(peers.events), ledgers=(ledger,))
        deaths = tuple(begin for spans in peers.down.values() for begin, _ in spans)
        return Signal(case, Truth(deaths=deaths))

    return Scenario("sessions", name, make, 4.0, 10.0)


def _nothing(_: Peers) -> None:
    """All three stay up."""


def _flap(peers: Peers) -> None:
    peers.flap(peers.moment(), 90)


def _short(peers: Peers) -> None:
    """Down for two seconds between two readings."""
    at = peers.t[int(peers.moment() / 10)]
    peers.flap(float(at) + 3, 2)


def _short_bare(peers: Peers) -> None:
    peers.bare = True
    _short(peers)


def _to_the_end(peers: Peers) -> None:
    peers.flap(peers.moment(), 10**6)


def _not_listed(peers: Peers) -> None:
    peers.unlisted = set(_PEERS)
    peers.bare = True
    peers.flap(peers.moment(), 120)


def _silent(peers: Peers) -> None:
    """The device did not answer for five minutes; every session stayed up."""
    at = peers.moment()
    peers.silence = (at, at + 300)


def _announced(peers: Peers) -> None:
    at = peers.moment()
    peers.announce("failover", at, 300, outage=1)
    for peer in range(3):
        peers.flap(at + 5, 60, peer)


def _late(peers: Peers) -> None:
    at = peers.moment()
    peers.announce("failover", at, 60, outage=1)
    peers.flap(at + 5, 600)


def _recorded(peers: Peers) -> None:
    """An unplanned failover."""
    at = peers.moment()
    peers.announce("failover", at, None)
    peers.flap(at + 5, 60)


def _counted(peers: Peers) -> None:
    """One flap is announced, two occur."""
    at = peers.moment()
    peers.announce("drill", at, 300, session_down=1)
    peers.flap(at + 5, 60)
    peers.flap(at + 30, 60, 1)


def _asked(peers: Peers) -> None:
    """One flap is announced and occurs."""
    at = peers.moment()
    peers.announce("drill", at, 300, session_down=1)
    peers.flap(at + 5, 60)


def _unkept(peers: Peers) -> None:
    """One flap is announced, none occurs."""
    peers.announce("drill", peers.moment(), 300, session_down=1)


def _never(peers: Peers) -> None:
    peers.flap(-100, 10**6, 2)


def _comes_late(peers: Peers) -> None:
    peers.flap(-100, 100 + peers.moment(), 2)


def _prefixes(peers: Peers) -> None:
    peers.prefixes = np.where(peers.t > peers.moment(), 20.0, 800.0)


def _prefixes_wave(peers: Peers) -> None:
    """A table that varies, and is resent once."""
    peers.prefixes = np.round(800 + 100 * np.sin(peers.t / 900))
    at = peers.moment()
    peers.prefixes[(peers.t >= at) & (peers.t < at + 30)] = 10


def _master(peers: Peers) -> None:
    peers.master = np.where(peers.t > peers.moment(), 1.0, 2.0)


def _master_announced(peers: Peers) -> None:
    at = peers.moment()
    peers.announce("failover", at, 300, outage=1)
    peers.master = np.where(peers.t > at + 5, 1.0, 2.0)


SCENARIOS = (
    sessions("all stand", _nothing),
    sessions("down for 90 s", _flap),
    sessions("down between two polls", _short),
    sessions("down between two polls, state only", _short_bare),
    sessions("down to the end", _to_the_end),
    sessions("not listed for 2 min", _not_listed),
    sessions("the device was silent", _silent),
    sessions("announced failover", _announced),
    sessions("back after the deadline", _late),
    sessions("failover that merely happened", _recorded),
    sessions("one announced, two go down", _counted),
    sessions("one announced, one goes down", _asked),
    sessions("one announced, none goes down", _unkept),
    sessions("one never up", _never),
    sessions("one comes up late", _comes_late),
    sessions("prefixes gone", _prefixes),
    sessions("prefixes sent anew", _prefixes_wave),
    sessions("another master", _master),
    sessions("another master, announced", _master_announced),
)

"""Which polls of an agent were fetched, recorded, and may be acknowledged; and the settings of a run's agents."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from soakwatch.sources.abc import SourceContext
from soakwatch_agent.framing import Object
from soakwatch_agent.host import chosen_probes

ACK_AFTER_S = 5.0
"""A poll counts as recorded this long after it was handed over: the record commits its batches each second."""


@dataclass
class FetchProgress:
    """How far one collector has fetched an agent's numbered polls.

    All up to ``after`` were fetched or are lost, and those in ``ahead``, which came early because they show the
    present while the backlog is being fetched.
    """

    after: int = 0
    acked: int = 0
    missing: int = 0  # numbers that never came: the spool was full, or its disk damaged
    agent_id: str = ""
    told: int = 0  # of the missing, by events
    ahead: set[int] = field(default_factory=set)
    _settled: deque[tuple[float, int]] = field(default_factory=deque)

    def start(self, acked: int, last: int, agent_id: str = "") -> None:
        """Takes the state of the agent's spool. Its numbers start again where one is beyond its last, and where the
        agent was installed again, so that it has another ``agent_id``."""
        anew = self.agent_id not in {"", agent_id}
        self.agent_id = agent_id
        if anew or self.after > last or self.after < acked:
            self.after = acked
            self.ahead.clear()
            self._settled.clear()
        self.acked = acked if anew else max(acked, min(self.acked, last))

    def take_news(self) -> int:
        """How many went missing since this was asked last."""
        news, self.told = max(0, self.missing - self.told), self.missing
        return news

    def take(self, number: int, *, ahead: bool) -> bool:
        """Notes a poll that arrived; False if it had arrived before."""
        if number <= self.after or number in self.ahead:
            if number == self.after + 1:
                self._advance(number)
            elif number > self.after and not ahead:
                self._pass(number)
            return False
        if ahead:
            self.ahead.add(number)
        else:
            self._pass(number)
        return True

    def _pass(self, number: int) -> None:
        """A poll arrived in order, so polls with a lower number that have not arrived never will."""
        early = sum(self.after < each < number for each in self.ahead)
        self.missing += number - self.after - 1 - early
        self._advance(number)

    def _advance(self, number: int) -> None:
        self.after = number
        while self.after + 1 in self.ahead:
            self.after += 1
        self.ahead = {early for early in self.ahead if early > self.after}

    def settle(self, now_s: float, waiting: Iterable[int]) -> int:
        """The highest number that may be acknowledged now; ``waiting`` are polls that are not handed over yet."""
        done = min(min(waiting, default=self.after + 1) - 1, self.after)
        if not self._settled or self._settled[-1][1] < done:
            self._settled.append((now_s, done))
        while self._settled and self._settled[0][0] <= now_s - ACK_AFTER_S:
            self.acked = max(self.acked, self._settled.popleft()[1])
        return self.acked


def run_name(site: SourceContext) -> str:
    """The name of a run for its agents: a monitor that was restarted goes on under the same one."""
    folder = site.folder.resolve()
    digest = hashlib.blake2b(str(folder).encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{folder.name[:80]}/{site.target[:80]}/{digest}"


def settings_body(
    site: SourceContext, probes: Sequence[str] | None, core_folders: Sequence[str], interval_ns: int, phase_ns: int
) -> Object:
    """The settings as the agent takes them (settings.py there). Raises ValueError for an unknown probe to leave out;
    one that is asked for the agent may know."""
    left_out = probes is not None and any(name.startswith("-") for name in probes)
    wanted = chosen_probes(probes) if left_out else probes
    return {
        "interval_ns": interval_ns,
        "phase_ns": phase_ns,
        "processes": [[each.name, each.how, each.what] for each in site.processes],
        "interfaces": None if site.interfaces is None else list(site.interfaces),
        "core_folders": list(core_folders),
        "probes": None if wanted is None else list(wanted),
    }

"""What the looks cost the device, as the device itself counts it, and its clock against the collector's."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TIME = re.compile(r"(\d+)m(\d+(?:[.,]\d+)?)s")


def shell_seconds(text: str) -> float | None:
    """CPU time of a shell and its children from the builtin ``times``; None if it says nothing.

    >>> shell_seconds("0m0.01s 0m0.02s\\n1m0.10s 0m0.20s\\n")
    60.33
    """
    reported = _TIME.findall(text)
    if len(reported) < 4:
        return None
    return round(sum(int(minutes) * 60 + float(seconds.replace(",", ".")) for minutes, seconds in reported[:4]), 6)


def clock_s(text: str) -> tuple[float, float] | None:
    """The device's wall clock and how exact it is, from ``date +%s.%N``; busybox knows whole seconds only.

    >>> clock_s("1700000000.250000000\\n"), clock_s("1700000000.%N\\n")
    ((1700000000.25, 0.0), (1700000000.5, 0.5))
    """
    whole, _, part = text.strip().partition(".")
    if not whole.isdecimal() or len(whole) > 12:
        return None
    if part.isdecimal():
        return float(f"{whole}.{part}"), 0.0
    return int(whole) + 0.5, 0.5


@dataclass
class Cost:
    """CPU time of the device for our looks: the shell with its children, and the sshd that serves this connection.

    Both begin anew with a connection; the sum goes on. Children are counted when they have ended. The privileged half
    of sshd, which sleeps during a session, is not in it.
    """

    before_s: float = 0.0
    shell_s: float = 0.0
    server_s: float = 0.0
    generation: int = -1

    def take(self, generation: int, shell_s: float | None, server_s: float | None) -> float | None:
        """The sum so far; None if the device does not tell."""
        if generation != self.generation:
            self.before_s += self.shell_s + self.server_s
            self.shell_s = self.server_s = 0.0
            self.generation = generation
        if shell_s is None:
            return None
        self.shell_s = max(self.shell_s, shell_s)
        self.server_s = max(self.server_s, server_s or 0.0)
        return self.before_s + self.shell_s + self.server_s

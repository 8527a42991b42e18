"""Keeps an iperf3 running, and accounts for what it reports.

After a change of command two leftovers of the last test may interfere. Its server may not know yet that the test is
over (the message is queued behind the overload, or was dropped) and refuses the next as busy: the client retries for
``PATIENCE_S``. And its datagrams may still be queued: a server takes the first it sees for the next test's, whose
client then waits in vain. So there is a pause between tests (``drain``), and a client that has not connected after
``HANDSHAKE_S`` is restarted. One that never connected sent nothing: the counters continue.
"""

from __future__ import annotations

from collections.abc import Callable

from soakwatch.sources.loads.iperf3.account import Account
from soakwatch.sources.loads.iperf3.output import AnyReader
from soakwatch.sources.loads.iperf3.reports import readable
from soakwatch.sources.programs import supervisor as programs
from soakwatch.sources.programs.supervisor import Terms

PATIENCE_S = 3.0  # retries while the last test still keeps the server busy
HANDSHAKE_S = 5.0  # iperf3 itself waits 30 s
_MAX_DOCUMENT = 4 << 20  # parsed on the event loop, so short: about an hour of one stream
_CONNECTED = ('"event":"start"', " connected to ", "Server listening on ")


class Supervisor(programs.Supervisor):
    """Runs an iperf3. ``now_ns`` is the run's clock.

    Lines go to the account as they come. With ``once`` it is not restarted. A ``client`` must connect within
    ``HANDSHAKE_S``; after one that did, the next starts ``drain_s`` later.
    """

    def __init__(
        self,
        account: Account,
        now_ns: Callable[[], int],
        *,
        once: bool = False,
        client: bool = False,
        drain_s: float = 0.0,
    ) -> None:
        self.account = account
        self._reports = _Reports(account, now_ns)
        handshake_s, patience_s = (HANDSHAKE_S, PATIENCE_S) if client else (None, 0.0)
        terms = Terms("iperf3", once=once, handshake_s=handshake_s, drain_s=drain_s, patience_s=patience_s)
        super().__init__(terms, self._reports)

    def silent_s(self, now_ns: int) -> float:
        """Seconds since the running test printed something; 0 without a test."""
        return (now_ns - self._reports.heard_ns) * 1e-9 if self.connected and self.account.running else 0.0


class _Reports:
    """See ``Output``: what iperf3 prints, for the account."""

    def __init__(self, account: Account, now_ns: Callable[[], int]) -> None:
        self.heard_ns = 0
        self._account, self._now_ns = account, now_ns
        self._reader = AnyReader(_MAX_DOCUMENT)

    def started(self) -> None:
        """See ``Output``."""
        self._reader = AnyReader(_MAX_DOCUMENT)

    def take(self, line: str) -> bool:
        """See ``Output``."""
        self.heard_ns = self._now_ns()
        self._account.take(self._reader.feed(line), self.heard_ns)
        return any(mark in line for mark in _CONNECTED)

    def at_work(self) -> bool:
        """See ``Output``: its lines say it."""
        return False

    async def ended(self) -> None:
        """See ``Output``."""
        self._account.take(self._reader.done(), self._now_ns())
        self._account.cut_off(self._now_ns())

    def failed(self, reason: str) -> None:  # noqa: ARG002 - the account has iperf3's own message
        """See ``Output``."""
        self._account.restarted()

    def reason(self, complaints: str, code: int) -> str:  # noqa: ARG002 - it is 1 whatever happened
        """See ``Output``: the last meaningful line of its standard error, or its own message."""
        lines = [line for line in complaints.splitlines() if line.strip() not in ("", "iperf3: exiting")]
        if lines:
            return readable(lines[-1].removeprefix("iperf3: ").removeprefix("error - "))
        return self._account.error or ""

"""The server of a run starts when somebody looks, ends when nobody does any more, and is there again for the next."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import psutil
from tests.commands import MAX_WAIT_S, wait_until

from soakwatch.plan.web import WebPlan
from soakwatch.web.supervisor import supervised_web


def servers() -> list[psutil.Process]:
    """The servers that this process started and that live."""
    return [
        child
        for child in psutil.Process().children()
        if child.status() != psutil.STATUS_ZOMBIE and "soakwatch.web" in child.cmdline()
    ]


def test_the_server_lives_while_somebody_looks(run: Path) -> None:
    """Nobody: no process. The first request is answered, by a process that is started for it; the same when it had
    ended for want of requests. A one-time link works once, whichever process is asked."""
    messages: list[str] = []
    with supervised_web(WebPlan(listen="127.0.0.1:0"), run, time.time_ns, messages.append, unused_s=0.5) as notice:
        assert servers() == []
        assert httpx.get(notice.link, timeout=MAX_WAIT_S, trust_env=False).status_code == 303
        wait_until(lambda: servers() == [], "the server to end: nobody looks")
        assert httpx.get(notice.link, timeout=MAX_WAIT_S, trust_env=False).status_code == 401
    assert servers() == []
    assert messages == []

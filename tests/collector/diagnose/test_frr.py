"""A daemon of FRR is asked what it holds, at the socket that it has."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path

from tests.needs import needs

from soakwatch.diagnose.allowance import Allowance, Subject
from soakwatch.diagnose.look import Runtime, Why
from soakwatch.diagnose.take import About, take
from soakwatch.diagnose.takers.frr import take_frr
from soakwatch.engine.diagnosing import HostAtHand
from soakwatch.engine.hooks.local_evidence import LocalHost

BGPD = "/usr/lib/frr/bgpd"


def test_bgpd_shows_its_types(tmp_path: Path) -> None:
    """Heap and types without a debugger, and without a stop."""
    needs("vtysh")
    tmp_path.chmod(0o777)
    alone = ["-Z", "-S", "-n", "-P", "0", "-p", "0", "-f", "/dev/null"]
    words = [BGPD, *alone, "--vty_socket", str(tmp_path), "-i", str(tmp_path / "pid")]
    with subprocess.Popen(words, stdout=-3, stderr=-3) as bgpd:
        try:
            deadline = time.monotonic() + 60
            while not (tmp_path / "bgpd.vty").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            about = About(1, "dut", "process=bgpd", bgpd.pid)
            look, kept = asyncio.run(take(HostAtHand(LocalHost()), about, Allowance(), 1))
        finally:
            bgpd.kill()
    assert (look.runtime, look.absent) == (Runtime.FRR, ())
    assert look.heap is not None
    assert 1 << 20 < look.heap.in_use <= look.heap.held
    types = {site.name: site for site in look.sites[0].sites}
    assert types["Command Tokens"].count > 1000
    assert b"qmem libfrr" in kept["show_memory.txt"]


def test_without_vtysh_it_is_missing() -> None:
    """A process that has no such socket is no daemon of FRR."""

    class Bare:
        async def run(self, command: str, timeout_s: float) -> tuple[bytes, str]:
            assert command.startswith("command -v vtysh")
            assert timeout_s > 1
            return b"", "exit code 127"

    taken = asyncio.run(take_frr(Bare(), Subject(1, 1), Allowance()))
    assert [(each.part, each.why) for each in taken.absent] == [("show memory", Why.NOT_INSTALLED)]

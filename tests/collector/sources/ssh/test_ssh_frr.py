"""Sessions of a real FRR: two bgpd in a network namespace of their own, asked by vtysh."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.collector.sources.ssh.test_ssh_asks import named, read
from tests.needs import needs

BGPD = "/usr/lib/frr/bgpd"
CONFIG = """\
router bgp 6460{me}
 bgp router-id 198.18.9.{me}
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 198.18.9.{peer} remote-as external
 neighbor 198.18.9.{peer} port 118{peer}
 neighbor 198.18.9.{peer} update-source 198.18.9.{me}
 neighbor 198.18.9.{peer} disable-connected-check
 neighbor 198.18.9.{peer} timers connect 1
 neighbor 192.0.2.77 remote-as 64999
 neighbor 192.0.2.77 shutdown
 address-family ipv4 unicast
  network 203.0.113.{me}/32
"""


@pytest.fixture
def routers() -> Iterator[Path]:
    """The folder of two bgpd that are neighbours; ``1/vtysh`` there asks the first."""
    needs("vtysh", "ip")
    if os.geteuid() != 0 or not Path(BGPD).exists():
        pytest.skip("bgpd in a network namespace needs root, and frr")
    folder = Path(tempfile.mkdtemp(prefix="frr-", dir="/tmp"))  # the account frr has to reach it
    space = folder.name

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        ip("netns", "add", space)
        ip("-n", space, "link", "set", "lo", "up")
        for me in (1, 2):
            ip("-n", space, "addr", "add", f"198.18.9.{me}/32", "dev", "lo")
            own = folder / str(me)
            own.mkdir()
            (own / "bgpd.conf").write_text(CONFIG.format(me=me, peer=3 - me), encoding="utf-8")
            (own / "vtysh.conf").touch()
            script = f'#!/bin/sh\nexec {shutil.which("vtysh")} --vty_socket {own} --config_dir {own} "$@"\n'
            (own / "vtysh").write_text(script, encoding="utf-8")
            (own / "vtysh").chmod(0o755)
        for path in (folder, *folder.rglob("*")):
            shutil.chown(path, "frr", "frr")
        for me in (1, 2):
            own = folder / str(me)
            listening = ["-p", f"118{me}", "-l", f"198.18.9.{me}", "-P", "0"]
            files = ["-f", str(own / "bgpd.conf"), "-i", str(own / "bgpd.pid"), "--vty_socket", str(own)]
            ip("netns", "exec", space, BGPD, "-n", "-Z", "-d", *files, *listening)
        yield folder
    finally:
        for pid in folder.rglob("bgpd.pid"):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(pid.read_text(encoding="utf-8")), signal.SIGTERM)
        subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def _asked(folder: Path, command: str) -> str:
    path = f"{folder / '1'}:{os.environ['PATH']}"
    done = subprocess.run(["sh", "-c", command], env={**os.environ, "PATH": path}, capture_output=True, check=False)
    return done.stdout.decode()


def test_a_session_of_a_real_router_comes_up_and_is_down_when_its_daemon_is_gone(routers: Path) -> None:
    ask = named("frr_sessions")
    peer = "protocol=bgp,peer=198.18.9.2,context=default"
    deadline = time.monotonic() + 200
    prefixes = ("network.session.prefixes", f"{peer},family=ipv4 unicast")
    readings = read(ask, _asked(routers, ask.command()))[0]
    while readings.get(prefixes) != 1 and time.monotonic() < deadline:
        time.sleep(0.2)
        readings = read(ask, _asked(routers, ask.command()))[0]
    assert readings["network.session.up", peer] == 1
    assert readings["network.session.flaps", peer] >= 1
    assert readings["network.session.uptime", peer] >= 0
    assert readings[prefixes] == 1
    assert not [key for key in readings if "192.0.2.77" in key[1]]  # it was shut down
    os.kill(int((routers / "1" / "bgpd.pid").read_text(encoding="utf-8")), signal.SIGKILL)
    while readings.get(("network.session.up", peer)) != 0 and time.monotonic() < deadline:
        readings = read(ask, _asked(routers, ask.command()))[0]
    assert readings["network.session.up", peer] == 0
    assert ("network.session.uptime", peer) not in readings

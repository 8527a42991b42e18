"""A real sshd with its own configuration, host keys and user key, on a free port of the loopback."""

from __future__ import annotations

import asyncio
import getpass
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from soakwatch.poller import Site, WatchedProcess

SSHD = "/usr/sbin/sshd"


def free_port() -> int:
    """A TCP port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "", *more: str) -> Path:
    """A key pair."""
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(path), *more]
    subprocess.run(command, check=True, capture_output=True)
    return path


def fingerprint_of(path: Path) -> str:
    """SHA256:... of a key file, as ssh-keygen says it."""
    told = subprocess.run(["ssh-keygen", "-lf", str(path)], check=True, capture_output=True, text=True)
    return told.stdout.split()[1]


@dataclass
class Server:
    """One sshd; ``stop``, ``start`` and ``kill_sessions`` are what happens to servers."""

    folder: Path
    port: int
    options: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None

    @property
    def user_key(self) -> Path:
        return self.folder / "user"

    @property
    def host_key(self) -> Path:
        return self.folder / "host_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def trust(self) -> None:
        """Writes the host's key into known_hosts."""
        public = self.host_key.with_suffix(".pub").read_text()
        self.known_hosts.write_text(f"# the device\n[127.0.0.1]:{self.port} {public}")

    def keys(self, **more: object) -> dict[str, object]:
        """The keys of a source that logs in here."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": getpass.getuser(),
            "key": str(self.user_key),
            "known_hosts": str(self.known_hosts),
            **more,
        }

    def start(self) -> None:
        """Starts it and waits until it listens."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd will not start without it
        lines = {
            "Port": str(self.port),
            "ListenAddress": "127.0.0.1",
            "HostKey": str(self.host_key),
            "AuthorizedKeysFile": str(self.folder / "authorized_keys"),
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PrintMotd": "no",
            "PermitRootLogin": "yes",
            "MaxStartups": "100",
        } | dict(self.options)
        config = self.folder / "sshd_config"
        config.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
        log = (self.folder / "sshd.log").open("ab")
        with log:
            self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(config)], stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.02)
        raise AssertionError((self.folder / "sshd.log").read_text())

    def stop(self) -> None:
        """Ends the listener; sessions go on."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(10)
            self.process = None

    def sessions(self) -> list[psutil.Process]:
        """The processes that serve connections of this server, and their children."""
        if self.process is None:
            return []
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill_sessions(self) -> None:
        for session in self.sessions():
            with suppress(psutil.NoSuchProcess):
                os.kill(session.pid, signal.SIGKILL)

    def close(self) -> None:
        left = self.sessions()
        self.stop()
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()


def site_for(folder: Path, *processes: WatchedProcess, interval_s: float = 1.0) -> Site:
    """The place of a source in a test."""
    return Site("dut", "dut", processes, None, folder, time.time_ns, interval_s)


class Relay:
    """Forwards TCP to a port of the loopback; ``stalled`` keeps the connections and forwards nothing more."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.stalled = False
        self.port = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._open:
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._open |= {writer, back}
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._tasks.add(task)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if self.stalled:
                    await asyncio.Event().wait()  # until it is cancelled
                sink.write(data)
                await sink.drain()
            sink.close()

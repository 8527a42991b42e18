"""A network system's command line on a real SSH server on loopback: prompts, pager, privileges, and its faults.

``typed`` keeps what was typed, so that a test can prove what was asked and what was not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

ERASURES = {
    "backspace": b"\x08" * 20 + b" " * 20 + b"\x08" * 20,
    "return": b"\r" + b" " * 20 + b"\r",
    "ansi": b"\x1b[42D" + b" " * 42 + b"\x1b[42D",
    "clear": b"\r\x1b[K",
    "none": b"",
}
"""How pagers erase their prompt."""


@dataclass
class CliDevice:
    """The device and its faults; everything may be changed while it runs.

    ``answers`` are texts by command. ``prompt`` has ``{mark}`` for ``>`` or ``#``. ``rows`` is the length of a page (0:
    no paging, also after ``unpage`` was typed). ``logs`` are lines that appear on their own: before the echo of the
    next command, and within its answer.
    """

    prompt: str = "asa{mark} "
    answers: dict[str, str] = field(default_factory=dict)
    refusal: str = "                ^\nERROR: % Invalid input detected at '^' marker."
    exec_refusal: str = "Invalid command"
    banner: str = ""
    login_password: str = "of the account"  # noqa: S105 - a double's
    enable_password: str | None = None
    echo: bool = True
    rows: int = 0
    unpage: tuple[str, ...] = ()
    pager: str = "<--- More --->"
    erase: str = "return"
    logs: list[str] = field(default_factory=list)
    greeting: str = ""
    greeting_key: str = ""
    piece: int = 0  # bytes written at a time; 0: all
    pause_s: float = 0.0  # after each piece
    silent: set[str] = field(default_factory=set)  # commands that never end; "" is the login
    cut: set[str] = field(default_factory=set)  # commands during whose answer the connection ends
    rename: dict[str, str] = field(default_factory=dict)  # another prompt after a command
    sessions_per_connection: int = 1
    version: str = "Cisco-2.0"
    typed: list[str] = field(default_factory=list)
    sessions: int = 0
    port: int = 0
    _open: dict[asyncssh.SSHServerConnection, int] = field(default_factory=dict)

    def keys(self, folder: Path) -> Mapping[str, object]:
        """The keys of a source for this device."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": "soak",
            "password": f"file:{folder / 'password'}",
            "known_hosts": str(folder / "known_hosts"),
        }

    def cut_all(self) -> None:
        """End every connection."""
        for connection in list(self._open):
            connection.abort()

    async def serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """One channel."""
        connection = process.channel.get_connection()
        try:
            await _Channel(self, process).run()
        except (asyncssh.Error, OSError):
            pass
        finally:
            if connection in self._open:
                self._open[connection] -= 1
            with suppress(OSError):
                process.exit(0)


class _Server(asyncssh.SSHServer):
    def __init__(self, device: CliDevice) -> None:
        self._device = device
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._device._open[conn] = 0  # noqa: SLF001 - one thing in two classes

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._connection is not None:
            self._device._open.pop(self._connection, None)  # noqa: SLF001

    def session_requested(self) -> bool | asyncssh.SSHServerProcess[bytes]:
        """Grant a session, unless the connection has the maximum already."""
        device, connection = self._device, self._connection
        held = device._open  # noqa: SLF001
        if connection is None or held.get(connection, 0) >= device.sessions_per_connection:
            return False
        held[connection] += 1
        return asyncssh.SSHServerProcess(device.serve, None, 3, allow_scp=False)

    def begin_auth(self, _username: str) -> bool:
        if self._device.banner and self._connection is not None:
            self._connection.send_auth_banner(self._device.banner)
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, _username: str, password: str) -> bool:
        return password == self._device.login_password


class _Channel:
    def __init__(self, device: CliDevice, process: asyncssh.SSHServerProcess[bytes]) -> None:
        self._device, self._process = device, process
        self._mark = ">" if device.enable_password is not None else "#"
        self._rows = device.rows
        self._ahead = bytearray()

    async def run(self) -> None:
        device, command = self._device, self._process.command
        device.sessions += 1
        if command is not None:
            device.typed.append(command)
            await self._write(self._answer(command) or device.exec_refusal + "\n")
            return
        if device.greeting:
            await self._write(device.greeting)
            while device.greeting_key and await self._key() != device.greeting_key.encode():
                pass
            await self._write("\r\n")
        if "" in device.silent:
            await asyncio.Event().wait()
        await self._prompt()
        while await self._command((await self._line(echo=device.echo)).strip()):
            await self._prompt()

    def _answer(self, command: str) -> str:
        return self._device.answers.get(command, "")

    async def _command(self, typed: str) -> bool:
        device = self._device
        if not typed:
            return True
        device.typed.append(typed)
        if typed in ("exit", "quit"):
            return False
        if typed in device.silent:
            await self._write("and then\r\nnothing: ")
            await asyncio.Event().wait()
        if typed == "enable" and device.enable_password is not None:
            await self._enable()
            return True
        if typed in device.unpage:
            self._rows = 0
        elif typed in device.answers:
            await self._pages(self._answer(typed), cut=typed in device.cut)
        else:
            await self._write(device.refusal + "\n")
        device.prompt = device.rename.get(typed, device.prompt)
        return True

    async def _enable(self) -> None:
        for _ in range(3):
            await self._write("Password: ")
            word = await self._line(echo=False)
            if word == self._device.enable_password:
                self._mark = "#"
                await self._write("\r\n")
                return
            await self._write("\r\nInvalid password\r\n")
        await self._write("Access denied.\r\n")

    async def _pages(self, text: str, *, cut: bool) -> None:
        if not (self._rows or self._device.logs or cut):
            await self._write(text.removesuffix("\n") + "\n")
            return
        lines = text.removesuffix("\n").split("\n")
        for number, line in enumerate(lines):
            if self._device.logs and number == len(lines) // 2:
                await self._write(self._device.logs.pop(0) + "\n")
            if cut and number == len(lines) // 2:
                self._process.channel.get_connection().abort()
                return
            if self._rows and number and number % self._rows == 0:
                await self._write(self._device.pager)
                if await self._key() == b"q":
                    await self._write("\r\n")
                    return
                self._process.stdout.write(ERASURES[self._device.erase])
                if self._device.erase == "none":
                    await self._write("\r\n")
            await self._write(line + "\n")

    async def _prompt(self) -> None:
        await self._write(self._device.prompt.replace("{mark}", self._mark))

    async def _write(self, text: str) -> None:
        device = self._device
        data = text.replace("\r\n", "\n").replace("\n", "\r\n").encode("utf-8", "surrogateescape")
        step = device.piece or len(data) or 1
        for start in range(0, len(data), step):
            self._process.stdout.write(data[start : start + step])
            await self._process.stdout.drain()
            if device.pause_s:
                await asyncio.sleep(device.pause_s)

    async def _key(self) -> bytes:
        while not self._ahead:
            data = await self._process.stdin.read(4096)
            if not data:
                raise asyncssh.ConnectionLost("the client is gone")
            self._ahead += data
        key = bytes(self._ahead[:1])
        del self._ahead[:1]
        return key

    async def _line(self, *, echo: bool) -> str:
        line = bytearray()
        first = True
        while True:
            key = await self._key()
            if first and echo and self._device.logs and key not in b"\r\n":
                await self._write("\n" + self._device.logs.pop(0) + "\n")
                await self._prompt()
            first = False
            if key in (b"\r", b"\n"):
                if echo:
                    self._process.stdout.write(b"\r\n")
                return line.decode("utf-8", "replace")
            line += key
            if echo:
                self._process.stdout.write(key)


@asynccontextmanager
async def run_cli_device(
    device: CliDevice, folder: Path, *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[CliDevice]:
    """Serve a device on a free port, or on ``port``; ``folder`` gets known_hosts with its key, and the password."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.listen(
        host,
        port,
        server_host_keys=[key],
        server_factory=lambda: _Server(device),
        encoding=None,
        line_editor=False,
        server_version=device.version,
    )
    try:
        device.port = server.get_port()
        (folder / "password").write_text(device.login_password, encoding="utf-8")
        public = key.export_public_key().decode()
        (folder / "known_hosts").write_text(f"[{host}]:{device.port} {public}", encoding="utf-8")
        yield device
    finally:
        device.cut_all()
        server.close()
        await server.wait_closed()

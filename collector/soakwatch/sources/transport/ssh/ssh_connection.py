"""One verified SSH connection to a device, opened when it is needed, kept, and opened again when it was lost.

The pauses between attempts are the wrapper's (polling.py slows a failing source down); a line tries once a look.
"""

from __future__ import annotations

import asyncio
import getpass
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import asyncssh

from soakwatch.sources.abc import SourceError
from soakwatch.sources.transport.ssh.host_key_trust import HostKeyVerifier, doorkeeper, fingerprint_of
from soakwatch.sources.transport.ssh.keys import Credentials, agent_keys, credentials
from soakwatch.sources.transport.ssh.ssh_access import Access, Login, with_client_config
from soakwatch.sources.transport.ssh.ssh_errors import failed, printable

_SILENCES = 3
_FAREWELL_S = 2.0
_BANNER = 4096


class _Client(asyncssh.SSHClient):
    """What asyncssh asks during a connection; ``lost`` says why it ended."""

    def __init__(self, keeper: HostKeyVerifier) -> None:
        self._keeper = keeper
        self.banner = ""

    def validate_host_public_key(self, _host: str, _addr: str, _port: int, key: asyncssh.SSHKey) -> bool:
        """Asked for a key that is in no known_hosts."""
        return self._keeper.accepts(key)

    def auth_banner_received(self, msg: str, _lang: str) -> None:
        """Kept for finding out what the device is."""
        self.banner = (self.banner + msg)[:_BANNER]


class SshConnection:
    """See ``soakwatch.sources.transport.ssh.abc.DeviceConnection``. Entered into an exit stack; whoever leaves it
    closes everything.

    ``folder`` is the run's: keys trusted on first use are kept there. ``device_timeout_s`` bounds a command.
    """

    def __init__(self, access: Access, folder: Path, device_timeout_s: float = 10.0) -> None:
        self.access = self._planned = access
        self.device_timeout_s = device_timeout_s
        self.name = _name(access)
        self.banner = ""
        self.server_version = ""
        self._folder = folder
        self._open: list[asyncssh.SSHClientConnection] = []  # jump hosts first, the device last
        self._leaving: set[asyncio.Task[None]] = set()
        self._identity: dict[str, str] = {}
        self._notes: list[str] = []
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in reversed(self._open):
            connection.close()
        self._leave()
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=_FAREWELL_S + 1)

    async def connection(self) -> asyncssh.SSHClientConnection:
        """The open connection, opened again if it was lost. Raises SourceError (PlanError for keys and files)."""
        async with self._lock:
            if self._open and not self._open[-1].is_closed():
                return self._open[-1]
            self.drop()
            await self._connect()
            return self._open[-1]

    def failed(self, error: BaseException) -> SourceError:
        """The sentence for an exception on this line."""
        return failed(self.name, error)

    def drop(self) -> None:
        """Cuts everything off at once."""
        for connection in reversed(self._open):
            connection.abort()
        self._leave()

    def identity(self) -> Mapping[str, str]:
        """Host key, how it was verified, SSH version."""
        return dict(self._identity)

    def notes(self) -> tuple[str, ...]:
        """Keys that were trusted on first use."""
        return tuple(self._notes)

    # --- opening and closing -------------------------------------------------------------------------------

    async def _connect(self) -> None:
        if self.access.ssh_config:
            # Asked once a connection: a change of the file counts from the next one on.
            self.access = await asyncio.to_thread(with_client_config, self._planned)
        access = self.access
        # A library's log must neither quote what is sent nor fill the log of a long run: complaints are the wrapper's.
        logging.getLogger("asyncssh").setLevel(logging.CRITICAL)
        try:
            async with asyncio.timeout(access.connect_timeout):
                for login in (*access.jump, access):
                    self._open.append(await self._connect_one(login))
        except TimeoutError:
            self.drop()
            text = f"{self.name} does not answer: no connection within {access.connect_timeout:g} s"
            raise SourceError(text) from None
        except BaseException:
            self.drop()
            raise

    async def _connect_one(self, login: Login) -> asyncssh.SSHClientConnection:
        keeper = await asyncio.to_thread(doorkeeper, login, self.access, self._folder)
        means = await asyncio.to_thread(credentials, login, None if login is self.access else self.access)
        client = _Client(keeper)
        async with AsyncExitStack() as asked:
            keys = [*means.keys, *await agent_keys(means, login, asked)]
            connection = await self._log_in(login, client, keeper, keys, means)
        if login is self.access:
            self._learn(connection, client, keeper)
        if keeper.note and keeper.note not in self._notes:
            self._notes.append(keeper.note)
        return connection

    async def _log_in(
        self,
        login: Login,
        client: _Client,
        keeper: HostKeyVerifier,
        keys: list[asyncssh.SSHKeyPair],
        means: Credentials,
    ) -> asyncssh.SSHClientConnection:
        try:
            return await asyncssh.connect(
                login.host,
                login.port,
                tunnel=self._open[-1] if self._open else None,
                config=None,  # what a plan says is all there is, with ssh_config what OpenSSH made of that
                username=_user(login),
                client_factory=lambda: client,
                known_hosts=keeper.trusted,
                client_keys=keys or None,  # None: no key of ~/.ssh and no agent by itself
                agent_path=None,
                password=means.password,
                keepalive_interval=self.access.keepalive,
                keepalive_count_max=_SILENCES,
                login_timeout=self.access.connect_timeout,
                compression_algs=None,
                encryption_algs="^aes128-gcm@openssh.com,aes256-gcm@openssh.com",  # half the CPU of the others here
                x509_trusted_certs=None,
                gss_host=None,
            )
        except (OSError, asyncssh.Error, ValueError) as error:
            if keeper.refusal:
                raise SourceError(keeper.refusal) from None
            if self._open and isinstance(error, asyncssh.ChannelOpenError):
                gate = _name(self.access.jump[len(self._open) - 1])
                raise SourceError(
                    f"the jump host {gate} does not connect to {login.host}:{login.port} ({printable(error.reason)}): "
                    "nothing may listen there, or the jump host may forbid it (AllowTcpForwarding, PermitOpen)"
                ) from None
            raise failed(_name(login), error, means.tried) from None

    def _learn(self, connection: asyncssh.SSHClientConnection, client: _Client, keeper: HostKeyVerifier) -> None:
        key = connection.get_server_host_key()
        self.banner = client.banner
        self.server_version = printable(str(connection.get_extra_info("server_version") or ""))
        self._identity = {
            "ssh": self.server_version,
            "host key": f"{fingerprint_of(key)} ({keeper.how or 'in known_hosts'})" if key is not None else "none",
        }
        if self.access.jump:
            self._identity["way"] = " > ".join(_name(each) for each in self.access.jump)

    def _leave(self) -> None:
        """Waits in the background until the connections are gone."""
        for connection in reversed(self._open):
            task = asyncio.get_running_loop().create_task(_farewell(connection))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)
        self._open.clear()


async def _farewell(connection: asyncssh.SSHClientConnection) -> None:
    try:
        async with asyncio.timeout(_FAREWELL_S):
            await connection.wait_closed()
    except (TimeoutError, OSError, asyncssh.Error):
        connection.abort()


async def open_line(
    access: Access, folder: Path, stack: AsyncExitStack, device_timeout_s: float = 10.0
) -> SshConnection:
    """A line that is connected, entered into ``stack``. Raises SourceError and PlanError."""
    line = await stack.enter_async_context(SshConnection(access, folder, device_timeout_s))
    await line.connection()
    return line


def _user(login: Login) -> str:
    return login.user or getpass.getuser()


def _name(login: Login) -> str:
    host = f"[{login.host}]" if ":" in login.host else login.host
    return f"{_user(login)}@{host}:{login.port}"

"""Real SSH servers for the tests of this folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.collector.ssh.server import SSHD, Server, free_port, make_key

Make = Callable[..., Server]


@pytest.fixture
def make_sshd(tmp_path: Path) -> Iterator[Make]:
    """Starts servers, each with a folder, keys and options of its own."""
    if not Path(SSHD).exists() or shutil.which("ssh-keygen") is None:
        pytest.skip("no sshd here")
    with ExitStack() as stack:
        made: list[Server] = []

        def make(**options: str) -> Server:
            folder = tmp_path / f"sshd{len(made)}"
            folder.mkdir()
            server = Server(folder, free_port(), options)
            make_key(server.host_key)
            make_key(server.user_key)
            (folder / "authorized_keys").write_bytes(server.user_key.with_suffix(".pub").read_bytes())
            server.trust()
            server.start()
            stack.callback(server.close)
            made.append(server)
            return server

        yield make


@pytest.fixture
def sshd(make_sshd: Make) -> Server:
    """One server with nothing special."""
    return make_sshd()

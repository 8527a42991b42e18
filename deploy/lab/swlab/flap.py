"""Flapping routes: in the kernel, for BGP to announce, and addresses of the tunnel, for EVPN."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from swlab.places import Router
from swlab.trouble import LabError, call

ROUTES, ADDRESSES = 1000, 500
_PAUSE_S = 0.5


class Flapping:
    """The number of turns so far, and why it ended early."""

    def __init__(self) -> None:
        self.turns = 0
        self.trouble = ""


def turn(node: Router) -> None:
    """Add and remove all routes and addresses once."""
    for verb in ("replace", "del"):
        routes = "".join(f"route {verb} blackhole 10.{n >> 8}.{n & 255}.0/24\n" for n in range(ROUTES))
        call("ip", "-n", node.space, "-batch", "-", stdin=routes)
        macs = "".join(
            f"fdb {verb} 02:00:00:00:{n >> 8:02x}:{n & 255:02x} dev host0 master static\n" for n in range(ADDRESSES)
        )
        call("bridge", "-n", node.space, "-batch", "-", stdin=macs)
        threading.Event().wait(_PAUSE_S)


@contextmanager
def flapping(node: Router) -> Iterator[Flapping]:
    """Flap in a thread within the block; all routes are gone at the end."""
    state, ended = Flapping(), threading.Event()

    def go_on() -> None:
        try:
            while not ended.is_set():
                turn(node)
                state.turns += 1
        except LabError as error:
            state.trouble = str(error)

    thread = threading.Thread(target=go_on, name="flapping", daemon=True)
    thread.start()
    try:
        yield state
    finally:
        ended.set()
        thread.join(30)

"""The scenarios: what happens when, and the expected verdict."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from swlab import flap, life, sensors, topology
from swlab.places import ROUTERS, SINK, STATE, A, B
from swlab.tenants import tenants
from swlab.trouble import LabError, call, wait_for


@dataclass(frozen=True, slots=True)
class Action:
    """An action ``at_s`` seconds after the start of the run."""

    at_s: float
    what: str
    do: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A plan, actions during its run, and the expected verdict. ``fails`` are the rules that must fail, ``may_fail``
    those that may; no others may. ``says`` are rule, target and the allowed worst outcomes there. ``sees``: faults made
    by ``soakwatch drill``, each with the rules of which one must see it.

    A scenario and its fault-free twin share a ``plan``; by default the plan has the scenario's name. ``forwards``: the
    routers must forward packets; else they need only be reachable for polls.
    """

    name: str
    expected: str
    actions: tuple[Action, ...] = ()
    fails: tuple[str, ...] = ()
    may_fail: tuple[str, ...] = ()
    says: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    sees: tuple[tuple[str, tuple[str, ...]], ...] = ()
    plan: str = ""
    forwards: bool = True
    background: Callable[[], AbstractContextManager[object]] = nullcontext
    afterwards: Callable[[], None] = lambda: None


def pull() -> None:
    """Pull the cable to the generator at the router with the virtual addresses."""
    topology.plug(life.master(), "north", up=False)


def plug_all() -> None:
    """Plug all cables in, and move the virtual addresses back to the first router."""
    for each in ROUTERS:
        for side in ("north", "south", "mgmt"):
            topology.plug(each, side, up=True)
    wait_for(lambda: sum(map(life.is_master, ROUTERS)) == 1, "one master of VRRP", 15)
    if life.master() is not A:
        topology.plug(B, "north", up=False)
        wait_for(lambda: life.master_or_none() is A, "the way back of the virtual addresses", 15)
        topology.plug(B, "north", up=True)
    wait_for(lambda: life.settled() == "", "a lab that forwards again", 30)


def kill_bgpd() -> None:
    """SIGKILL the routing daemon of the first router."""
    call(*life.entry_command(A), "kill", f"-{signal.SIGKILL.value}", (_number("bgpd")))


def hold_partner(*, still: bool) -> None:
    """Stop or continue the other router's routing daemons: their sessions then time out on the first router."""
    number = signal.SIGSTOP.value if still else signal.SIGCONT.value
    daemons = [life.inside(B, "cat", f"/run/frr/{daemon}.pid").strip() for daemon in ("bgpd", "ospfd")]
    call(*life.entry_command(B), "kill", f"-{number}", *daemons)


def restart_routing() -> None:
    """Restart all routing daemons and their watchdog with their own script, as an administrator does."""
    life.inside(A, "/usr/lib/frr/frrinit.sh", "restart", patience_s=30)


@contextmanager
def leaking() -> Iterator[None]:
    """Run a helper process in the first router that starts to leak after 10 s."""
    words = ("env", f"PYTHONPATH={Path(__file__).parents[1]}", sys.executable, "-m", "swlab.leak", "--after", "10")
    process = life.start_inside(A, *words)
    try:
        yield
    finally:
        process.kill()  # this kills nsenter; ``end_inside`` kills the helper
        process.wait()
        life.end_inside(A, "swlab.leak")


@contextmanager
def flapping_warm() -> Iterator[None]:
    """Flap routes at the other router, with three turns before the run so that caches have filled."""
    for _ in range(3):
        flap.turn(B)
    with flap.flapping(B) as state:
        yield
    if state.trouble:
        raise LabError(state.trouble)
    print(f"{state.turns} turns of {flap.ROUTES} routes and {flap.ADDRESSES} addresses", file=sys.stderr)


@contextmanager
def serving() -> Iterator[None]:
    """Run an iperf3 server in the sink; its output goes to the file that the plan follows."""
    log = STATE / "iperf3.log"
    log.unlink(missing_ok=True)
    words = ("iperf3", "-s", "-i", "1", "-f", "k", "--forceflush", "--logfile", str(log))
    process = subprocess.Popen(["ip", "netns", "exec", SINK, *words], stdin=subprocess.DEVNULL)
    try:
        wait_for(lambda: log.exists() and "listening" in log.read_text(), "iperf3's server", 10)
        yield
    finally:
        process.terminate()
        process.wait(10)


def cut(*, up: bool) -> None:
    """Plug or pull the management cable of the first router."""
    topology.plug(A, "mgmt", up=up)


def set_filter(value: int) -> None:
    """Set the first router's source address validation (RFC 3704), which the lab's traffic never triggers; 0 is off."""
    call("ip", "netns", "exec", A.space, "sysctl", "-q", "-w", f"net.ipv4.conf.all.rp_filter={value}")


@contextmanager
def two_tenants(*, apart: bool) -> Iterator[None]:
    """The tunnels of two tenants, and the server for one tenant's load."""
    with tenants(apart=apart), serving():
        yield


def _number(daemon: str) -> str:
    return life.inside(A, "cat", f"/run/frr/{daemon}.pid").strip()


_HELD = (
    Action(20, "the partner's routing stands still", lambda: hold_partner(still=True)),
    Action(30, "it goes on", lambda: hold_partner(still=False)),
)

SCENARIOS = {
    each.name: each
    for each in (
        Scenario("quiet", "pass"),
        Scenario("flap", "pass", background=flapping_warm),
        Scenario("spike", "pass", background=serving),
        Scenario("capacity", "pass", background=serving),
        Scenario("failover", "pass", (Action(20, "the cable is pulled", pull),), afterwards=plug_all),
        Scenario(
            "kill",
            "fail",
            (Action(15, "kill -9 bgpd", kill_bgpd),),
            fails=("core_dump", "process_restart"),
            may_fail=("session_flap",),  # its session may be up again before the list of sessions arrives
            afterwards=plug_all,
        ),
        Scenario("restart", "pass", (Action(15, "frrinit.sh restart", restart_routing),), afterwards=plug_all),
        Scenario("session", "fail", _HELD, fails=("session_flap",), afterwards=plug_all),
        Scenario("drill", "pass", _HELD, afterwards=plug_all),
        Scenario(
            "firedrill",
            "pass",
            sees=(
                ("kill", ("process_restart",)),
                ("link", ("periodic_pause", "loss")),  # VRRP moves the traffic within a second
                ("log", ("kernel_fault",)),
            ),
            afterwards=plug_all,
        ),
        Scenario("leak", "fail", fails=("memory_growth",), background=leaking),
        Scenario(
            "cut",
            "inconclusive",
            (
                Action(12, "the management network is cut", lambda: cut(up=False)),
                Action(27, "it is back", lambda: cut(up=True)),
            ),
            afterwards=plug_all,
        ),
        Scenario(
            "setting",
            "pass",
            (Action(20, "somebody sets net.ipv4.conf.all.rp_filter", lambda: set_filter(2)),),
            says=(("setup", "ra", ("warn",)),),
            forwards=False,
            afterwards=lambda: set_filter(0),
        ),
        Scenario(
            "untouched",
            "pass",
            says=(("setup", "ra", ("pass", "not applicable")),),
            plan="setting",
            forwards=False,
        ),
        Scenario(
            "heat",
            "fail",
            (Action(25, "the inlet has 78 °C", lambda: sensors.heat(78)),),
            fails=("hardware_limit",),
            forwards=False,
            background=sensors.sensing,
        ),
        Scenario(
            "warmth",
            "pass",
            (Action(25, "the inlet has 62 °C", lambda: sensors.heat(62)),),
            says=(("hardware_limit", "ra", ("pass",)),),
            plan="heat",
            forwards=False,
            background=sensors.sensing,
        ),
        Scenario(
            "neighbour",
            "fail",
            fails=("tenant_isolation",),
            background=lambda: two_tenants(apart=False),
        ),
        Scenario(
            "apart",
            "pass",
            says=(("tenant_isolation", "ra", ("pass",)),),
            plan="neighbour",
            background=lambda: two_tenants(apart=True),
        ),
        Scenario(
            "observer",
            "pass",
            says=(("observer_cost", "ra", ("warn",)), ("observer_cost", "rb", ("pass",))),
            forwards=False,
        ),
    )
}

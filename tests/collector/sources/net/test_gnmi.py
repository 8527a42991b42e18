"""Streaming telemetry, against a gNMI target that speaks the protocol on loopback."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Protocol

import pytest
from pygnmi.spec.v080 import gnmi_pb2

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import LoginRefusedError, SourceContext, SourceError
from soakwatch.sources.profiles.loading import load_profiles
from soakwatch.sources.profiles.profile_model import GnmiPath
from soakwatch_gnmi import Config, GnmiPoller, start
from soakwatch_gnmi.latest import Latest, path_queries
from soakwatch_gnmi.paths import Plain, matches, parse_path
from soakwatch_gnmi.values import BadValueError, number, plain
from soakwatch_model.sample import Answer
from soakwatch_testing.gnmi_target import GnmiTarget, gnmi_target

DISCARDS = "/interfaces/interface[name=*]/state/counters/in-discards"
OPER = "/interfaces/interface[name=*]/state/oper-status"
PATHS: list[dict[str, object]] = [
    {
        "path": DISCARDS,
        "metric": "system.network.packet.dropped",
        "labels": {"interface": "{name}", "direction": "receive"},
    },
    {
        "path": OPER,
        "metric": "system.network.up",
        "labels": {"interface": "{name}"},
        "mode": "on_change",
        "values": {"UP": 1, "DOWN": 0},
    },
]
LEAVES: dict[str, object] = {
    "/interfaces/interface[name=Ethernet1]/state/counters/in-discards": "18446744073709551615",
    "/interfaces/interface[name=Ethernet1]/state/oper-status": "openconfig-interfaces:UP",
}


class Files(Protocol):
    """A certificate and its key as files."""

    certificate: Path
    key: Path

    @property
    def pin(self) -> str: ...


def _site(interval_s: float = 0.2) -> SourceContext:
    return SourceContext("dut", "dut", (), None, Path(), _Clock().now_ns, interval_s)


class _Clock:
    def __init__(self) -> None:
        self._readings = 10**18

    def now_ns(self) -> int:
        self._readings += 1
        return self._readings


def _target(**keys: object) -> GnmiTarget:
    return GnmiTarget(leaves=dict(LEAVES), **keys)  # type: ignore[arg-type]


async def _until(poller: GnmiPoller, metric: str) -> Answer:
    """Polls until a metric comes, at most 200 s."""
    async with asyncio.timeout(200):
        while True:
            answer = await poller.poll(10**18)
            if any(sample.metric == metric for sample in answer.samples):
                return answer
            await asyncio.sleep(0.02)


async def _until_it_fails(poller: GnmiPoller) -> str:
    """Polls until one fails, at most 200 s."""
    async with asyncio.timeout(200):
        while True:
            try:
                await poller.poll(10**18)
            except SourceError as failure:
                return str(failure)
            await asyncio.sleep(0.02)


def _config(target: GnmiTarget, **more: object) -> Config:
    keys: dict[str, object] = {"host": "127.0.0.1", "port": target.port, "paths": PATHS, "interval": "200ms"}
    return Config.model_validate({**keys, "plaintext": True, **more})


def test_samples_and_changes() -> None:
    """``gnmi``: counters keep every digit, a link going down is an event, and its state holds until it is updated."""
    with gnmi_target(_target()) as target:

        async def watch() -> tuple[Answer, Answer, Answer]:
            async with AsyncExitStack() as stack:
                poller = await start(_config(target), _site(), stack)
                await _until(poller, "system.network.packet.dropped")
                first = await _until(poller, "system.network.packet.dropped")
                target.set("/interfaces/interface[name=Ethernet1]/state/oper-status", "DOWN")
                async with asyncio.timeout(200):
                    while not (changed := await poller.poll(10**18 + 1)).events:
                        await asyncio.sleep(0.02)
                after = await poller.poll(10**18 + 10**6)
                return first, changed, after

        first, changed, after = asyncio.run(watch())
    values = {sample.metric: sample.value for sample in first.samples}
    assert values["system.network.packet.dropped"] == 18446744073709551615
    assert values["system.network.up"] == 1
    assert [(event.kind, event.object) for event in changed.events] == [("link.down", "interface=Ethernet1")]
    held = [sample for sample in after.samples if sample.metric == "system.network.up"]
    assert [(sample.value, sample.time_ns) for sample in held] == [(0, 10**18 + 10**6)]


def test_a_broken_stream_is_reported_and_reopened() -> None:
    """A stream that the device ends is a failed poll; the next one subscribes again."""
    with gnmi_target(_target()) as target:

        async def watch() -> str:
            async with AsyncExitStack() as stack:
                poller = await start(_config(target), _site(), stack)
                await _until(poller, "system.network.up")
                target.hang_up()
                why = await _until_it_fails(poller)
                await _until(poller, "system.network.up")
                return why

        assert asyncio.run(watch()) == f"127.0.0.1 port {target.port} ended the stream of updates"


def test_a_silent_stream_is_no_answer() -> None:
    """A device that accepts the paths and sends nothing is a failed poll after three intervals."""
    with gnmi_target(_target(silent=True)) as target:

        async def watch() -> None:
            async with AsyncExitStack() as stack:
                poller = await start(_config(target), _site(), stack)
                await poller.poll(10**18)
                await poller.poll(10**18 + 2 * 10**9)
                await poller.poll(10**18 + 4 * 10**9)

        with pytest.raises(SourceError, match="accepted the paths but sent no update for 3 intervals"):
            asyncio.run(watch())


def test_login_and_encodings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong password is one sentence without it; an encoding that the device lacks names those it has."""
    monkeypatch.setenv("GNMI_PW", "wonderful")
    with gnmi_target(_target(login=("soak", "wonderful"))) as target:
        good = _config(target, user="soak", password="env:GNMI_PW")
        assert asyncio.run(_first_poll(good)).samples == ()
        monkeypatch.setenv("GNMI_PW", "mistaken")
        with pytest.raises(LoginRefusedError, match="refuses the login: check user or password") as caught:
            asyncio.run(_first_poll(good))
        assert "mistaken" not in str(caught.value)
        monkeypatch.setenv("GNMI_PW", "wonderful")
        with pytest.raises(SourceError, match="has no encoding JSON: it has JSON_IETF, PROTO"):
            asyncio.run(_first_poll(_config(target, user="soak", password="env:GNMI_PW", encoding="JSON")))


async def _first_poll(config: Config) -> Answer:
    async with AsyncExitStack() as stack:
        poller = await start(config, _site(), stack)
        answer = await poller.poll(0)
        return Answer(tuple(s for s in answer.samples if s.metric == "nothing"), (), ())


def test_tls(certificate: Files, other_certificate: Files) -> None:
    """A pinned certificate and a file of authorities are trusted; an unknown and another certificate are refused."""
    files = certificate.key.read_bytes(), certificate.certificate.read_bytes()
    with gnmi_target(_target(), *files) as target:
        for more in ({"pin": certificate.pin}, {"ca": str(certificate.certificate)}):
            asyncio.run(_first_poll(_config(target, plaintext=False, **more)))
        with pytest.raises(SourceError, match="shows another certificate than the pinned one, refused"):
            asyncio.run(_first_poll(_config(target, plaintext=False, pin=other_certificate.pin)))
        with pytest.raises(SourceError, match="its TLS certificate is not trusted: give ca, pin or name"):
            asyncio.run(_first_poll(_config(target, plaintext=False)))


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"paths": []}, "dut: gnmi names neither a profile nor paths"),
        ({"paths": [{"path": "/a[", "metric": "system.uptime"}]}, "'/a[' is not a path"),
        ({"paths": [{"path": "/a", "metric": "system.uptim"}]}, "unknown metric 'system.uptim'"),
        ({"paths": [{"path": "/a", "metric": "queue.depth"}]}, "queue.depth has the labels queue"),
        ({"pin": "ab" * 32}, "plaintext: true means no TLS"),
    ],
)
def test_bad_plans(keys: dict[str, object], sentence: str) -> None:
    """What cannot be subscribed to is refused before anything is sent."""
    with pytest.raises(PlanError) as caught:
        asyncio.run(_first_poll(_config(GnmiTarget(port=1), **keys)))
    assert sentence in str(caught.value)


def test_a_port_without_a_server() -> None:
    """A closed port is one sentence."""
    with pytest.raises(SourceError, match="127.0.0.1 port 1 refuses: nothing listens there"):  # noqa: RUF043
        asyncio.run(_first_poll(_config(GnmiTarget(port=1))))


@pytest.mark.slow
def test_the_paths_of_every_profile_can_be_asked() -> None:
    """Each path of the shipped profiles parses and has the labels of its metric."""
    profiles = load_profiles()
    asked = {name: path_queries(profiles[name].gnmi) for name in profiles if profiles[name].gnmi}
    assert {"arista-eos", "juniper-junos"} <= asked.keys()
    assert all(lines for lines in asked.values())


def test_a_tree_is_taken_apart_by_the_keys_of_the_path() -> None:
    """Devices answer with leaves or with whole trees; both give the same readings (RFC 7951)."""
    tree: Plain = {
        "openconfig-interfaces:interface": [
            {"name": "a", "state": {"counters": {"in-discards": "5"}}},
            {"name": "b", "state": {}},
            "odd",
            None,
        ]
    }
    steps = parse_path(DISCARDS)
    assert list(matches(steps, parse_path("/interfaces"), tree)) == [({"name": "a"}, "5")]
    assert list(matches(steps, parse_path("/interfaces/interface[name=a]/state"), {"counters": {"in-discards": 5}}))
    assert not list(matches(steps, parse_path("/system"), tree))


def test_values_of_every_kind() -> None:
    """Numbers, texts, decimals and enumerations are read; anything else is one sentence."""
    parsed = gnmi_pb2.TypedValue
    assert plain(parsed(uint_val=2**64 - 1)) == 2**64 - 1
    assert plain(parsed(decimal_val=gnmi_pb2.Decimal64(digits=1234, precision=2))) == 12.34
    with pytest.raises(BadValueError, match="a decimal value has 4000000000 digits behind its point"):
        plain(parsed(decimal_val=gnmi_pb2.Decimal64(digits=1, precision=4_000_000_000)))
    assert number("18446744073709551615", {}, None) == 18446744073709551615
    assert number("oc:UP", {"UP": 1.0}, None) == 1.0
    odd: list[Plain] = ["twelve", None, {}, float("nan"), "UP"]
    for bad in odd:
        with pytest.raises(BadValueError):
            number(bad, {"DOWN": 0.0} if bad == "UP" else {}, None)
    with pytest.raises(BadValueError, match="JSON value is malformed"):
        plain(parsed(json_val=b"{"))


def test_random_updates_raise_nothing() -> None:
    """Whatever comes under whatever path, the newest readings are kept and nothing is raised or grows without end."""
    rng = random.Random(5)
    latest = Latest(
        path_queries(
            [
                GnmiPath(
                    DISCARDS,
                    "system.network.packet.dropped",
                    None,
                    {"interface": "{name}", "direction": "receive"},
                    "sample",
                    {},
                )
            ]
        )
    )

    def tree(depth: int) -> object:
        kind = rng.randrange(6 if depth else 4)
        if kind == 4:
            return [tree(depth - 1) for _ in range(3)]
        if kind == 5:
            names = ("name", "interface", "state", "counters", "in-discards", "x")
            return {rng.choice(names): tree(depth - 1) for _ in range(3)}
        return rng.choice([None, True, 7, -1.5, "9", "x", float("inf")])

    for _ in range(3000):
        path = parse_path("/" + "/".join(rng.choices(["interfaces", "interface[name=e]", "state", "counters"], k=3)))
        latest.take(path, tree(5), 1)  # type: ignore[arg-type]
        latest.forget(path)
    samples, events, faults = latest.drain()
    assert len(samples) < 100
    assert (events, len(faults) <= 100) == ((), True)

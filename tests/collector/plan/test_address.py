"""Targets as addresses on the command line: what they become in a plan, and what is wrong with them."""

from __future__ import annotations

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.plan import plan_from_text, plan_text, quick_plan
from soakwatch.plan.commented_plan import draft
from soakwatch.plan.target_address import source_of


@pytest.mark.parametrize(
    ("address", "name", "poller", "keys"),
    [
        ("local", "local", "local", {}),
        (
            "snmp://fw1?version=2c&community=env:C&retries=3",
            "fw1",
            "snmp",
            {"host": "fw1", "version": "2c", "community": "env:C", "retries": 3},
        ),
        (
            "snmp://soak@198.18.0.1:1161?version=3&auth=env:A",
            "198.18.0.1",
            "snmp",
            {"host": "198.18.0.1", "port": 1161, "user": "soak", "version": "3", "auth": "env:A"},
        ),
        ("ssh://soak@fw1/", "fw1", "ssh", {"host": "fw1", "user": "soak"}),
        ("icmp://[::1]?count=2", "ip6--1", "icmp", {"host": "::1", "count": 2}),
        (
            "prometheus://fw1:9100/metrics?keep=vpp_*,frr_*",
            "fw1",
            "prometheus",
            {"url": "http://fw1:9100/metrics", "keep": ["vpp_*", "frr_*"]},
        ),
        ("prometheus+https://fw1/metrics", "fw1", "prometheus", {"url": "https://fw1/metrics"}),
        ("https://fw1/health?expect=ok", "fw1", "http", {"url": "https://fw1/health", "expect": "ok"}),
        ("tcp://fw1:443?tls=true", "fw1", "tcp", {"host": "fw1", "port": 443, "tls": True}),
    ],
)
def test_what_an_address_says(address: str, name: str, poller: str, keys: dict[str, object]) -> None:
    """Scheme, user, host, port and the keys behind the question mark, typed as the poller wants them."""
    assert source_of(address) == (name, poller, keys)


def test_addresses_of_one_host_are_one_target() -> None:
    """SNMP and SSH of a device are its sources; what an address says of the interval wins."""
    plan = quick_plan(["ssh://soak@fw1", "snmp://fw1?interval=10s", "local"], (), "2s")
    assert {target.name: [source.poller for source in target.sources] for target in plan.targets} == {
        "fw1": ["ssh", "snmp"],
        "local": ["local"],
    }
    assert [source.config.interval for target in plan.targets for source in target.sources] == [2.0, 10.0, 2.0]
    assert plan_from_text(plan_text(plan), "record") == plan


def test_different_addresses_are_different_targets_and_one_address_is_one() -> None:
    """Colons cannot stand in a name; what is left of an IPv6 address still tells which one it is."""
    plan = quick_plan(
        ["icmp://[2001:db8::1]", "icmp://[2001:db8:1::]", "icmp://[::1]", "icmp://1", "tcp://[2001:DB8:0:0::1]:22"],
        (),
        "2s",
    )
    assert {target.name: len(target.sources) for target in plan.targets} == {
        "2001-db8--1": 2,
        "2001-db8-1--": 1,
        "ip6--1": 1,
        "1": 1,
    }


def test_a_drafted_plan_names_the_addresses() -> None:
    """What ``init --target`` writes is the plan that ``run --target`` would run."""
    addresses = ("snmp://fw1?version=2c&community=env:COMMUNITY", "ssh://soak@fw1")
    text = draft("night", "24h", "5s", ("bgpd",), addresses)
    assert "      - snmp: {interval: 5s, host: fw1, version: 2c, community: env:COMMUNITY}" in text
    drafted, quick = plan_from_text(text, "plan.yaml"), quick_plan(addresses, ("bgpd",), "5s", "24h", "night")
    assert drafted.targets == quick.targets


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("snmp", "the target 'snmp' names no host: write snmp://HOST"),
        ("tcp://fw1:443/path", "the target tcp://fw1/path has a path, which tcp does not take"),
        ("snmp://fw1?comunity=env:C", "unknown key 'comunity'; did you mean 'community'?"),
        ("snmp://fw1?community=public-secret", "community: a secret must not be written in clear text: write env:NAME"),
        ("ssh://soak:hunter2@fw1", "the target ssh://fw1 contains a password"),
        ("ftp://fw1", "the target 'ftp' names no poller"),
        ("k6://fw1", "the target 'k6' is a load, which has no address: name it in a plan"),
        (
            "traps://fw1",
            "traps listens for what devices send: name it in a plan, as 'traps: {listen: 127.0.0.1:PORT}'",
        ),
        ("syslog://127.0.0.1:5514", "the target syslog:// cannot be polled: syslog listens for what devices send"),
        ("syslog", "as 'syslog: {listen: 127.0.0.1:PORT}'"),
        (
            "local://soak:hunter2@here",
            "the target local:// names this machine, which has no host or keys here: write local",
        ),
        ("ssh+https://fw1", "the target ssh+https://fw1: ssh takes a host, not a URL: write ssh://HOST"),
    ],
)
def test_what_is_wrong_with_an_address(address: str, sentence: str) -> None:
    """One sentence with the remedy, and never the secret that someone wrote into it."""
    with pytest.raises(PlanError) as caught:
        quick_plan([address])
    assert sentence in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "public-secret" not in str(caught.value)

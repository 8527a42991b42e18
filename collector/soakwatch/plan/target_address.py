"""A target as one word on the command line: ``local``, ``snmp://198.18.0.1?version=2c``, ``ssh://soak@fw``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlsplit

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import INSTALLED, Registry, not_installed
from soakwatch.core.suggest import hint, nearest
from soakwatch.core.yaml import Plain
from soakwatch.sources.source_modules import poller_module
from soakwatch_model.roles import DUT
from soakwatch_rules.wording.quantities import cut_to

LOCAL = "local"
_WEB = ("http", "https")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9._]+")
_NO_SIGN = re.compile(r"[^A-Za-z0-9._]")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,58}[A-Za-z0-9])?")
_EXAMPLE = "write local, snmp://HOST?version=2c, ssh://USER@HOST, agent://USER@HOST or prometheus://HOST:9100/metrics"


def source_of(address: str, registry: Registry = INSTALLED) -> tuple[str, str, dict[str, Plain]]:
    """Target name, source and its keys of an address.

    ``NAME://[USER@]HOST[:PORT][/PATH][?KEY=VALUE&...]``, where NAME is a poller (or http, https) and the keys are those
    of ``soakwatch pollers NAME``; a poller that takes a URL gets it whole (``NAME+https://`` for TLS). A secret is
    never part of it: keys such as ``auth`` take env:NAME or file:PATH. Raises PlanError.
    """
    if address == LOCAL:
        return LOCAL, LOCAL, {}
    scheme, there, _ = address.partition("://")
    _refuse_unasked(scheme, registry)
    if not there:
        if address in registry.pollers.names():
            raise PlanError(f"the target {address!r} names no host: write {address}://HOST")
        if nearest(address, [LOCAL]) is not None:
            raise PlanError(f"the target {_shown(address)} is not an address; did you mean {LOCAL!r}? {_EXAMPLE}")
        raise PlanError(f"the target {_shown(address)} has no scheme: {_example(address)}")
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise PlanError(
            f"the target {scheme}://… is not an address: its host or its port is invalid: {_EXAMPLE}"
        ) from None
    if parts.password is not None:
        raise PlanError(
            f"the target {scheme}://{parts.hostname} contains a password: remove it, and give it by a key that takes "
            "env:NAME or file:PATH, such as ?password=env:DUT_PASSWORD"
        )
    poller, plus, web = parts.scheme.partition("+")
    poller = "http" if poller in _WEB else poller
    if poller in registry.loads.names():
        raise PlanError(
            f"the target {scheme!r} is a load, which has no address: name it in a plan, and soakwatch check polls it "
            f"(its keys: soakwatch loads {poller})"
        )
    if poller not in registry.pollers.names() or poller == LOCAL or (plus and web not in _WEB):
        if missing := not_installed(poller):
            raise PlanError(f"the target {scheme!r}: {missing}")
        near = hint(poller, [name for name in registry.pollers.names() if name != LOCAL])
        raise PlanError(f"the target {scheme!r} names no poller{near}; see soakwatch pollers")
    if not parts.hostname:
        raise PlanError(f"the target {scheme}:// names no host: {_EXAMPLE}")
    config = poller_module(poller, registry).config
    keys: dict[str, Plain] = {}
    if plus and "url" not in config.model_fields:
        raise PlanError(
            f"the target {scheme}://{parts.hostname}: {poller} takes a host, not a URL: write {poller}://HOST"
        )
    if plus or "host" not in config.model_fields:
        web_scheme = web or (parts.scheme if parts.scheme in _WEB else "http")
        keys["url"] = f"{web_scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    else:
        keys["host"] = parts.hostname
        if port is not None:
            keys["port"] = port
        if parts.path not in ("", "/"):
            raise PlanError(
                f"the target {scheme}://{parts.hostname}{parts.path} has a path, which {poller} does not take"
            )
    if parts.username:
        keys["user"] = parts.username
    fields = _dict(config.model_json_schema().get("properties"))
    for key, text in parse_qsl(parts.query, keep_blank_values=True):
        keys[key] = _value(text, _dict(fields.get(key)))
    return _name(parts.hostname) or poller, poller, keys


def _name(host: str) -> str:
    """A target's name: the host as it is, with what a name cannot hold as hyphens; different addresses stay different.

    >>> _name("fw1.lab"), _name("2001:DB8:0::1"), _name("2001:db8:1::"), _name("::1")
    ('fw1.lab', '2001-db8--1', '2001-db8-1--', 'ip6--1')
    """
    try:
        plain = ip_address(host).compressed
    except ValueError:
        return _NOT_IN_NAME.sub("-", host).strip("-._")
    name = _NO_SIGN.sub("-", plain)
    return f"ip6{name}" if name.startswith("-") else name


def _refuse_unasked(scheme: str, registry: Registry) -> None:
    """Raise PlanError for schemes that cannot be polled at a host: this machine, and listeners."""
    if scheme == LOCAL:
        raise PlanError(f"the target {scheme}:// names this machine, which has no host or keys here: write {LOCAL}")
    if scheme not in registry.pollers.names():
        return
    keys = poller_module(scheme, registry).config.model_fields
    if "listen" in keys and not {"host", "url"} & keys.keys():
        raise PlanError(
            f"the target {scheme}:// cannot be polled: {scheme} listens for what devices send: name it in a "
            f"plan, as '{scheme}: {{listen: 127.0.0.1:PORT}}' (soakwatch pollers {scheme})"
        )


def targets_of(
    addresses: Collection[str], interval: str | None, registry: Registry = INSTALLED
) -> dict[str, dict[str, Plain]]:
    """The plan's ``targets`` of some addresses: one device under test per host, with one source per address.

    ``interval`` applies where an address gives none. Raises PlanError.
    """
    targets: dict[str, dict[str, Plain]] = {}
    for address in dict.fromkeys(addresses):
        name, poller, keys = source_of(address, registry)
        given: dict[str, Plain] = {**keys} if interval is None else {"interval": interval, **keys}
        sources = targets.setdefault(name, {"role": DUT, "sources": []})["sources"]
        assert isinstance(sources, list)
        sources.append({poller: given})
    return targets


def _value(text: str, schema: Mapping[str, object]) -> Plain:
    """A value of an address in the type of its key; what does not fit stays text, which the plan then refuses."""
    choices = schema.get("anyOf")
    kinds = {_dict(choice).get("type") for choice in choices} if isinstance(choices, list) else {schema.get("type")}
    if "boolean" in kinds and text in {"true", "false"}:
        return text == "true"
    if "integer" in kinds and re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    if "number" in kinds and re.fullmatch(r"-?\d{1,18}(\.\d{1,18})?", text):
        return float(text)
    if "array" in kinds and "string" not in kinds:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _dict(value: object) -> dict[str, object]:
    return {str(key): inner for key, inner in value.items()} if isinstance(value, dict) else {}


def _example(address: str) -> str:
    """How to write a target that came without a scheme; with its own host, where it looks like one.

    >>> _example("fw1")
    'write ssh://USER@fw1, snmp://fw1?version=2c, agent://USER@fw1 or prometheus://fw1:9100/metrics'
    """
    if _HOST.fullmatch(address) is None:
        return _EXAMPLE
    return (
        f"write ssh://USER@{address}, snmp://{address}?version=2c, agent://USER@{address}"
        f" or prometheus://{address}:9100/metrics"
    )


def _shown(address: str) -> str:
    return repr(cut_to(address, 60))

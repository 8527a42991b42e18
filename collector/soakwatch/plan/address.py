"""A target as one word on the command line: ``local``, ``snmp://198.18.0.1?version=2c``, ``ssh://soak@fw``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlsplit

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import INSTALLED, Registry
from soakwatch.core.suggest import hint, nearest
from soakwatch.core.yaml import Plain
from soakwatch.sources.registry import poller_module

LOCAL = "local"
_WEB = ("http", "https")
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9._]+")
_NO_SIGN = re.compile(r"[^A-Za-z0-9._]")
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
        near = nearest(address, [LOCAL])
        guess = "" if near is None else f"; did you mean {near!r}?"
        raise PlanError(f"the target {_shown(address)} is no address{guess}: {_EXAMPLE}")
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise PlanError(f"the target {scheme}://… is not a valid address: check host and port: {_EXAMPLE}") from None
    if parts.password is not None:
        raise PlanError(
            f"the target {scheme}://{parts.hostname} holds a password: remove it, and give it by a key that takes "
            "env:NAME or file:PATH, such as ?password=env:DUT_PASSWORD"
        )
    poller, plus, web = parts.scheme.partition("+")
    poller = "http" if poller in _WEB else poller
    if poller not in registry.pollers.names() or poller == LOCAL or (plus and web not in _WEB):
        near = hint(poller, [name for name in registry.pollers.names() if name != LOCAL])
        raise PlanError(f"the target {scheme!r} cannot be polled: there is no such poller{near}; see soakwatch pollers")
    if not parts.hostname:
        raise PlanError(f"the target {scheme}:// names no host: {_EXAMPLE}")
    config = poller_module(poller, registry).config
    keys: dict[str, Plain] = {}
    if plus and "url" not in config.model_fields:
        raise PlanError(f"the target {scheme}://{parts.hostname}: {poller} is asked at a host: write {poller}://HOST")
    if plus or "host" not in config.model_fields:
        way = web or (parts.scheme if parts.scheme in _WEB else "http")
        keys["url"] = f"{way}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    else:
        keys["host"] = parts.hostname
        if port is not None:
            keys["port"] = port
        if parts.path not in ("", "/"):
            raise PlanError(
                f"the target {scheme}://{parts.hostname}{parts.path} has a path, which {poller} has no use for"
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
    """This machine has no host, and whom devices send to has none to ask."""
    if scheme == LOCAL:
        raise PlanError(f"the target {scheme}:// names this machine, which has no host or keys here: write {LOCAL}")
    if scheme not in registry.pollers.names():
        return
    keys = poller_module(scheme, registry).config.model_fields
    if "listen" in keys and not {"host", "url"} & keys.keys():
        raise PlanError(
            f"the target {scheme}:// cannot be asked, for {scheme} is a listener that devices send to: name it in a "
            f"plan, as '{scheme}: {{listen: 127.0.0.1:PORT}}' (soakwatch pollers {scheme})"
        )


def targets_of(
    addresses: Collection[str], interval: str | None, registry: Registry = INSTALLED
) -> dict[str, dict[str, Plain]]:
    """The plan's ``targets`` of some addresses: one device under test a host, with a source an address.

    ``interval`` counts where an address says none. Raises PlanError.
    """
    made: dict[str, dict[str, Plain]] = {}
    for address in dict.fromkeys(addresses):
        name, poller, keys = source_of(address, registry)
        given: dict[str, Plain] = {**keys} if interval is None else {"interval": interval, **keys}
        sources = made.setdefault(name, {"role": "dut", "sources": []})["sources"]
        assert isinstance(sources, list)
        sources.append({poller: given})
    return made


def _value(text: str, schema: Mapping[str, object]) -> Plain:
    """A value of an address as the key's type wants it; what does not fit stays text, for the plan to refuse."""
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


def _shown(address: str) -> str:
    return repr(address if len(address) <= 60 else address[:59] + "…")

"""The options of ``soakwatch import --prometheus``, with every message for the user."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from soakwatch.sources.tables.errors import DataError
from soakwatch.transfer.importing.command_line import NAMES, given_options, options_of

if TYPE_CHECKING:
    from soakwatch.sources.pollers.prometheus import Config
    from soakwatch.sources.pollers.prometheus.map_file import MapEntry
    from soakwatch.transfer.importing.files import ImportedRun

F = TypeVar("F", bound=Callable[..., object])

HELP = """\
--prometheus http://HOST:9090 --from TIME reads what a Prometheus (Thanos, Mimir, VictoriaMetrics) scraped: by default
every name that is known (node_exporter and others), else what --query selects. Each host is a target. TIME is as in a
table, or so long ago (12h). A selector is read sample by sample; an expression (--query 'NAME=sum(rate(x[1m]))') at
each --step. --map NAME=METRIC[,LABEL={label}][:UNIT] maps a name, --map FILE.yaml many ({metrics: [{from: vpp_drops,
metric: system.network.packet.dropped, labels: {interface: "{if}", direction: receive}}]}); --keep GLOB keeps names."""
_OPTIONS = (
    click.option(
        "--prometheus", "prometheus", metavar="URL", help="Prometheus to read from, such as http://prom:9090."
    ),
    click.option("--from", "begin", metavar="TIME", help="With --prometheus: from when; a time, or 12h (ago)."),
    click.option("--to", "end", metavar="TIME", show_default="now", help="With --prometheus: until when."),
    click.option(
        "--query",
        "queries",
        multiple=True,
        metavar="PROMQL",
        help="With --prometheus: selector, or NAME=EXPRESSION. May be repeated.  [every name that is known]",
    ),
    click.option("--step", "step", metavar="DURATION", help="With --prometheus: time between values of an expression."),
    click.option("--keep", "keep", multiple=True, metavar="GLOB", help="With --prometheus: names kept as they are."),
    click.option("--token", "token", metavar="env:NAME", help="With --prometheus: bearer token (env:NAME, file:PATH)."),
    click.option("--user", "user", metavar="NAME", help="With --prometheus: name for basic authentication."),
    click.option("--password", "password", metavar="env:NAME", help="With --prometheus: password for it."),
    click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="NAME=env:NAME",
        help="With --prometheus: header with a secret value, such as X-Scope-OrgID=env:TENANT. May be repeated.",
    ),
    click.option("--ca", "ca", metavar="FILE", help="With --prometheus: CA bundle (PEM) of an https server."),
)
_WRITTEN = {"begin": "--from", "end": "--to", "queries": "--query", "headers": "--header"}
_ONLY = ("begin", "end", "queries", "step", "keep", "token", "user", "password", "headers", "ca")
_FOR_BOTH = frozenset({"meanings", "target", "role", "phases", "events", "zone"})
_EDGES = (("--from", "begin"), ("--to", "end"))
_NAMED = re.compile(r"\s*([A-Za-z_][\w:]*)\s*=(?![=~])\s*(.+)", re.DOTALL | re.ASCII)
_SUFFIXES = (".yaml", ".yml", ".json")


def prometheus_options(command: F) -> F:
    """Adds the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def refuse_without(given: Mapping[str, object]) -> None:
    """Raises UsageError if options of ``--prometheus`` are given without it."""
    others = [_WRITTEN.get(name, f"--{name}") for name in _ONLY if given.get(name)]
    if others:
        raise click.UsageError(f"{', '.join(others)}: only with --prometheus URL")


def name_of(given: Mapping[str, object]) -> str:
    """The name of the run: that of the target, or the server's host."""
    from urllib.parse import urlsplit

    target = given.get("target")
    return target if isinstance(target, str) else urlsplit(str(given["prometheus"])).hostname or "prometheus"


def import_prometheus(
    folder: Path,
    name: str,
    given: Mapping[str, object],
    rules: Sequence[str],
    progress: Callable[[str], None],
) -> ImportedRun:
    """Makes a record in ``folder``. Raises DataError, UsageError, PlanError and RecordError."""
    from soakwatch.transfer.importing.prometheus_series import Wanted, read_prometheus

    refused = given_options({n: given.get(n) for n in NAMES if n not in _FOR_BOTH})
    if refused:
        raise click.UsageError(f"{', '.join(refused)}: only for tables, not with --prometheus")
    options = options_of({**given, "meanings": ()}, None)
    if not given.get("begin"):
        raise click.UsageError("--from is missing: write a time, or --from 12h for the last 12 hours")
    now_s = time.time()
    begin_s, end_s = (_moment_s(option, given.get(key), options.zone, now_s) for option, key in _EDGES)
    if end_s <= begin_s:
        raise click.UsageError("--to is not after --from: swap them")
    wanted = Wanted(
        _config(given),
        begin_s,
        min(end_s, now_s),
        options.target,
        options.role,
        options.roles,
        options.timeline,
        rules,
    )
    command = ["soakwatch", "import", "--prometheus", wanted.config.url]
    return asyncio.run(read_prometheus(folder, name, wanted, command, progress))


def _moment_s(option: str, text: object, zone: str | None, now_s: float) -> float:
    """A time in s since 1970: absolute, or so long before now."""
    from soakwatch.transfer.importing.timeline import moment_of

    if not isinstance(text, str):
        return now_s
    if text.strip() == "now":
        return now_s
    try:
        moment = moment_of(text.strip().removeprefix("-").removesuffix(" ago"), zone)
    except ValueError:
        raise click.UsageError(
            f"{option} {text} is not a time: write one such as 2026-11-21T20:00:00Z, or 12h for 12 hours ago"
        ) from None
    return now_s - moment.time_ns * 1e-9 if moment.relative else moment.time_ns * 1e-9


def _config(given: Mapping[str, object]) -> Config:
    """The keys of the source ``prometheus`` that the options are. Raises UsageError and DataError."""
    from pydantic import ValidationError

    from soakwatch.core.units import seconds
    from soakwatch.sources.pollers.prometheus import Config
    from soakwatch.sources.pollers.prometheus.map_file import installed_maps
    from soakwatch.transfer.importing.prometheus_series import known_names

    entries = [entry for text in _texts(given, "meanings") for entry in _entries(text)]
    queries: list[object] = [_query(text) for text in _texts(given, "queries")]
    if not queries:
        known = [*entries, *(entry for each in installed_maps().values() for entry in each.metrics)]
        queries = [known_names(known), *(f'{{__name__=~"{_pattern(glob)}"}}' for glob in _texts(given, "keep"))]
    try:
        step_s = seconds(str(given["step"])) if given.get("step") else None
    except ValueError as error:
        raise click.UsageError(f"--step: {error}") from None
    if step_s is None and any(isinstance(query, dict) for query in queries):
        raise click.UsageError("--step is missing: write how often expressions are evaluated, such as --step 15s")
    keys = {
        "url": given["prometheus"],
        "query": queries,
        "step": f"{15.0 if step_s is None else step_s}s",
        "metrics": entries,
        "keep": list(_texts(given, "keep")),
        "headers": _headers(_texts(given, "headers")),
        **{key: given[key] for key in ("token", "user", "password", "ca") if given.get(key)},
    }
    try:
        return Config.model_validate(keys)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        reason = str(first.get("ctx", {}).get("error", first["msg"]))
        key = (
            {"url": "prometheus", "headers": "header"}.get(str(first["loc"][0]), str(first["loc"][0]))
            if first["loc"]
            else "prometheus"
        )
        raise click.UsageError(f"--{key}: {reason}") from None


def _headers(texts: Sequence[str]) -> dict[str, str]:
    pairs = (text.partition("=") for text in texts)
    return {name: reference for name, _, reference in pairs}


def _query(text: str) -> object:
    named = _NAMED.fullmatch(text)
    return {"name": named[1], "expr": named[2]} if named else text


def _pattern(glob: str) -> str:
    """A glob as the regular expression of a selector, within its quotes."""
    import fnmatch

    plain = fnmatch.translate(glob).removeprefix("(?s:").removesuffix(r")\Z").removesuffix(r")\z")
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def _entries(text: str) -> list[MapEntry]:
    """The mappings of one ``--map``. Raises DataError."""
    import yaml
    from pydantic import ValidationError

    from soakwatch.sources.pollers.prometheus.map_file import MapEntry, MapFile
    from soakwatch.sources.tables.options import meaning
    from soakwatch.sources.tables.units import into
    from soakwatch_model.metric import BY_NAME

    try:
        if "=" not in text or text.lower().endswith(_SUFFIXES):
            data = yaml.safe_load(Path(text).read_text(encoding="utf-8"))
            return MapFile.model_validate({"title": text, **data} if isinstance(data, dict) else data).metrics
        name, meant = meaning(text)
        known = BY_NAME.get(meant.metric)
        scale = 1.0 if meant.unit is None or known is None else into(meant.unit, known.unit, meant.metric)
        made = {"from": name, "metric": meant.metric, "labels": dict(meant.labels), "scale": scale}
        return [MapEntry.model_validate(made)]
    except OSError as error:
        raise DataError(f"--map {text}: cannot be read: {(error.strerror or 'no reason given').lower()}") from None
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        reason = str(first.get("ctx", {}).get("error", first["msg"]))
        raise DataError(f"--map {text}: {f'{place}: ' if place else ''}{reason}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise DataError(f"--map {text}: {' '.join(str(error).split())[:200]}") from None


def _texts(given: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = given.get(name)
    return tuple(map(str, value)) if isinstance(value, tuple) else ()

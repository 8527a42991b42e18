"""A page over HTTP: whether it answers as it should, how long that takes, and values out of it.

A page that is not there or is not as expected is an answer (``reach.up`` 0, with the reason); a failure of this machine
to connect is a failed poll. Example: ``http: {url: "https://198.18.0.1/health", expect: ok}``, and for values:
``values: [{metric: system.sessions, json: data.sessions, labels: {table: nat}}]``.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from contextlib import AsyncExitStack
from functools import partial
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from soakwatch.core.errors import PlanError
from soakwatch.core.regex import user_regex
from soakwatch.sources.abc import SourceContext, timing
from soakwatch.sources.mapping import check_mapping
from soakwatch.sources.reachability import Reach
from soakwatch.sources.transport.http import Page, PeerError, WebAccess, WebConfig, web_access
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import Answer, Fault, Sample, object_text

_LONG = 64 << 10  # bytes: what takes longer to read holds up no other poll
_STEP = re.compile(r"([^.\[\]]+)|\[(\d{1,6})\]")
_MAX_DEPTH = 20


class ValueShape(BaseModel):
    """One value of the page: where it is found, and what it means."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: Annotated[str, Field(description="metric of the catalogue (soakwatch metrics)")]
    labels: Annotated[dict[str, str], Field(default_factory=dict, description="labels of the object")]
    json_path: Annotated[str | None, Field(default=None, alias="json", description="path in JSON, such as a.b[0].c")]
    regex: Annotated[str | None, Field(default=None, description="regular expression; group 1 is the number")]
    header: Annotated[str | None, Field(default=None, description="name of a header that holds the number")]
    scale: Annotated[float, Field(default=1.0, description="factor to the metric's unit")]

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        sources = [source for source in (self.json_path, self.regex, self.header) if source is not None]
        if len(sources) != 1:
            raise ValueError("a value needs exactly one of json, regex and header")
        check_mapping(self.metric, self.labels, self.scale)
        if self.regex is not None and not user_regex(self.regex, "regex").groups:
            raise ValueError("regex has no group: put the number in parentheses")
        return self


class Config(WebConfig):
    """Keys of the source ``http``."""

    asks_management = True
    resting = "silent"

    status: Annotated[list[int], Field(default_factory=list, description="accepted status codes; default: 200 to 299")]
    expect: Annotated[str | None, Field(default=None, min_length=1, description="text that the page must contain")]
    values: Annotated[list[ValueShape], Field(default_factory=list, description="values out of the page")]


class HttpPoller:
    """One page, requested at each poll over a connection that is kept."""

    def __init__(self, config: Config, access: WebAccess) -> None:
        self._config, self._access = config, access
        parts = urlsplit(config.url)
        self._reach = Reach(parts.netloc.rpartition("@")[2], parts.scheme)

    async def poll(self, now_ns: int) -> Answer:
        """One request. Raises SourceError if this machine could not try."""
        begin = time.perf_counter()
        try:
            page = await self._access.get()
        except PeerError as failure:
            return self._answer(now_ns, [], str(failure))
        took = time.perf_counter() - begin
        status = Sample("reach.status", self._reach.object, page.status, now_ns)
        well = page.status in self._config.status if self._config.status else 200 <= page.status < 300
        if not well:
            return self._answer(now_ns, [], f"the page answers with status {page.status}", (status,))
        if self._config.expect is not None and self._config.expect not in page.text:
            return self._answer(now_ns, [], f"the page does not contain {self._config.expect!r}", (status,))
        reading = partial(read_values, page, self._config.values, now_ns)
        samples, faults = reading() if len(page.body) < _LONG else await asyncio.to_thread(reading)
        return Answer((*self._reach.samples(now_ns, 1, [took]), status, *samples), (), faults)

    def _answer(self, now_ns: int, trips: list[float], why: str, extra: tuple[Sample, ...] = ()) -> Answer:
        fault = Fault("reach.round_trip", self._reach.object, why)
        missing = tuple(Fault(v.metric, _object(v), why) for v in self._config.values)
        return Answer((*self._reach.samples(now_ns, 1, trips), *extra), (), (fault, *missing))


def read_values(page: Page, shapes: list[ValueShape], now_ns: int) -> tuple[tuple[Sample, ...], tuple[Fault, ...]]:
    """The values of a page; one that is absent, or not a number, is a fault of its metric."""
    samples, faults = [], []
    tree: object = None
    if any(shape.json_path is not None for shape in shapes):
        try:
            tree = json.loads(page.body)
        except (ValueError, RecursionError):
            tree = None
    for shape in shapes:
        try:
            value = _extract(page, shape, tree)
            value = _number(value) * shape.scale
            samples.append(Sample(shape.metric, _object(shape), value, now_ns))
        except _MissingError as missing:
            faults.append(Fault(shape.metric, _object(shape), str(missing)))
    return tuple(samples), tuple(faults)


class _MissingError(Exception):
    pass


def _extract(page: Page, shape: ValueShape, tree: object) -> object:
    if shape.header is not None:
        value = page.headers.get(shape.header.lower())
        if value is None:
            raise _MissingError(f"the page has no header {shape.header}")
        return value
    if shape.regex is not None:
        match = user_regex(shape.regex).search(page.text[:1_000_000])
        if match is None:
            raise _MissingError("nothing in the page matches the regular expression")
        return match[1]
    if tree is None:
        raise _MissingError("the page is not JSON")
    node: object = tree
    for step in list(_STEP.finditer(shape.json_path or ""))[:_MAX_DEPTH]:
        key, index = step[1], step[2]
        if key is not None and isinstance(node, dict) and key in node:
            node = node[key]
        elif index is not None and isinstance(node, list) and int(index) < len(node):
            node = node[int(index)]
        else:
            raise _MissingError(f"the page's JSON has no {shape.json_path}")
    return node


def _number(content: object) -> float:
    if isinstance(content, int):
        return int(content)
    try:
        value = float(content) if isinstance(content, float | str) else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _MissingError(f"{str(content)[:40]!r} is not a number")
    return value


def _object(shape: ValueShape) -> str:
    order = BY_NAME[shape.metric].labels
    return object_text(**{name: shape.labels[name] for name in order})


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> HttpPoller:
    """Opens the client. Raises PlanError for wrong keys, SourceError for a server without the pinned certificate."""
    limit_s = timing(0, site.interval_s, config.timeout).timeout_s
    if config.wait is not None and config.wait > limit_s:
        raise PlanError(
            f"{site.target}: http: wait of {config.wait:g} s is longer than a poll may take ({limit_s:g} s)"
        )
    return HttpPoller(config, await web_access(config, site.target, limit_s, stack))

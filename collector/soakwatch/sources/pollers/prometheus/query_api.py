"""What a Prometheus (or Thanos, Mimir, VictoriaMetrics) answers to queries: series with the times of their samples."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from pydantic_core import from_json

from soakwatch.sources.abc import LoginRefusedError, SourceError
from soakwatch.sources.pollers.prometheus.exposition_page import PageSample
from soakwatch.sources.pollers.prometheus.promql import bounded, is_selector
from soakwatch.sources.transport.http import Page, TooLargeError, WebAccess, shown

NAME = "__name__"
_FORM = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
_COUNTED = re.compile(r".*_(total|count|sum|bucket)")
_MAX_REASON = 300
_OWN = re.compile(r"up|scrape_\w+|ALERTS\w*")
"""What Prometheus itself writes about an exporter, whether or not that answers."""
_EVALUATED = "expression"  # instead of a job

Labels = Mapping[str, str]
Group = tuple[str, str]
"""Job and instance: the exporter that a series comes from."""


class TooMuchError(SourceError):
    """The answer is longer than is read, or the server found the query too large: ask for a shorter time."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a plan; ``name`` is that of the values of an expression, which have none of their own."""

    text: str
    name: str = ""

    @property
    def raw(self) -> bool:
        """Whether its samples are read as they were scraped: it is a selector and nothing else."""
        return is_selector(self.text)


@dataclass(frozen=True, slots=True)
class ApiSeries:
    """One series of an answer: labels without the name; times in s of the server's clock, in order, and values."""

    name: str
    labels: Labels
    time_s: Sequence[float]
    value: Sequence[float]

    @property
    def group(self) -> Group:
        """The exporter."""
        return self.labels.get("job", ""), self.labels.get("instance", "")


@dataclass(frozen=True, slots=True)
class ShownSeries:
    """One series as its exporter shows it, page after page: times in s of the server's clock, in order."""

    name: str
    labels: Labels
    kind: str
    time_s: Sequence[float]
    value: Sequence[float]


@dataclass(frozen=True, slots=True)
class Scrape:
    """What one exporter showed at one time."""

    time_s: float
    group: Group
    page: tuple[PageSample, ...]

    @property
    def answered(self) -> bool:
        """Whether the exporter answered: there is more than what Prometheus notes of each scrape (``up``)."""
        return evaluated(self.group) or any(_OWN.fullmatch(sample.name) is None for sample in self.page)


class QueryApi:
    """The queries of one source, over the connection of a source. Every method raises SourceError."""

    def __init__(self, access: WebAccess, url: str) -> None:
        self._access, self._where = access, shown(url)

    async def now_s(self) -> tuple[float, float]:
        """The server's clock: it was between these two. The value of ``time()`` is not it: VictoriaMetrics answers with
        half a minute ago, as later samples may still come, and gives the moment of its answer in whole seconds."""
        data = await self._data("/api/v1/query", {"query": "time()"})
        result = data.get("result")
        if data.get("resultType") == "scalar" and isinstance(result, list) and len(result) == 2:
            return float(result[0]), float(result[0])
        if data.get("resultType") == "vector" and isinstance(result, list) and result:
            second = float(result[0]["value"][0])
            return second, second + 1
        raise SourceError(f"{self._where} does not answer as Prometheus does: url is its address, without /api")

    async def version(self) -> str:
        """The server's version; "" where it does not tell."""
        try:
            return str((await self._data("/api/v1/status/buildinfo", {})).get("version", ""))
        except SourceError:
            return ""

    async def kinds(self) -> Mapping[str, str]:
        """The kinds of names (gauge, counter …) as the exporters tell them; empty where the server keeps none."""
        try:
            data = await self._data("/api/v1/metadata", {"limit_per_metric": "1"})
        except SourceError:
            return {}
        return {
            name: str(entries[0].get("type", ""))
            for name, entries in data.items()
            if isinstance(entries, list) and entries and isinstance(entries[0], Mapping)
        }

    async def series(self, query: Query, begin_s: float, end_s: float, step_s: float) -> list[ApiSeries]:
        """The values in (begin, end], each once: of a selector the samples with their own times, of an expression its
        value at each multiple of the step. A step without a scrape has none.

        Raises TooMuchError.
        """
        if query.raw:
            window_ms = max(1, round((end_s - begin_s) * 1000))
            asked = {"query": f"{query.text}[{window_ms}ms]", "time": f"{end_s:.3f}"}
            data = await self._data("/api/v1/query", asked)
        else:
            first, last = (int(edge_s / step_s + 1e-9) for edge_s in (begin_s, end_s))
            if last <= first:
                return []
            asked = {
                "query": bounded(query.text, step_s),
                "start": f"{(first + 1) * step_s:.3f}",
                "end": f"{last * step_s:.3f}",
                "step": f"{step_s:.3f}",
            }
            data = await self._data("/api/v1/query_range", asked)
        if data.get("resultType") != "matrix":
            raise SourceError(
                f"{self._where}: {query.text} gives {data.get('resultType')}, not series: correct the query"
            )
        result = data.get("result")
        return list(_series(query, result if isinstance(result, list) else [], begin_s))

    async def _data(self, path: str, asked: Mapping[str, str]) -> Mapping[str, object]:
        content = urlencode(asked).encode() if asked else None
        try:
            page = await self._access.request("POST" if asked and "query" in asked else "GET", path, _FORM, content)
        except TooLargeError as error:
            raise TooMuchError(str(error)) from None
        return self._read(page, path)

    def _read(self, page: Page, path: str) -> Mapping[str, object]:
        if page.status in {401, 403}:
            remedy = "give token, or user and password" if page.status == 401 else "the secret is not accepted"
            raise LoginRefusedError(f"{self._where} answers with status {page.status}: {remedy}")
        try:
            answer = from_json(page.body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise SourceError(
                f"{self._where}{path} answers with status {page.status} and not as Prometheus does: url is its "
                "address, such as http://HOST:9090"
            )
        if answer.get("status") != "success":
            reason = " ".join(str(answer.get("error", "no reason given")).split())[:_MAX_REASON]
            if "too many samples" in reason or "exceeded maximum resolution" in reason:
                raise TooMuchError(f"{self._where}: {reason}")
            raise SourceError(f"{self._where} refuses the query: {reason}")
        data = answer.get("data")
        return data if isinstance(data, dict) else {}


def by_exporter(
    series: Iterable[tuple[Query, ApiSeries]], kinds: Mapping[str, str]
) -> Mapping[Group, Sequence[ShownSeries]]:
    """The series of each exporter.

    ``job`` and ``instance`` stand for the exporter, so the samples of a selector are without: they are what its page
    shows. Those of an expression keep every label.
    """
    exporters: dict[Group, list[ShownSeries]] = defaultdict(list)
    for query, one in series:
        apart = {"job", "instance"} if query.raw else set()
        labels = {key: value for key, value in one.labels.items() if key not in apart}
        kind = kinds.get(one.name) or kinds.get(one.name.removesuffix("_total")) or _kind(one.name)
        group = one.group if query.raw else (_EVALUATED, query.text)
        exporters[group].append(ShownSeries(one.name, labels, kind, one.time_s, one.value))
    return exporters


def scrapes(exporters: Mapping[Group, Sequence[ShownSeries]]) -> list[Scrape]:
    """The samples of each exporter as its pages, in order of time."""
    pages: dict[tuple[float, Group], list[PageSample]] = defaultdict(list)
    for group, series in exporters.items():
        for one in series:
            for time_s, value in zip(one.time_s, one.value, strict=True):
                pages[time_s, group].append(PageSample(one.name, one.labels, value, one.kind))
    return [Scrape(time_s, group, tuple(page)) for (time_s, group), page in sorted(pages.items())]


def evaluated(group: Group) -> bool:
    """Whether these are values of an expression, which no exporter shows."""
    return group[0] == _EVALUATED


def _kind(name: str) -> str:
    return "counter" if _COUNTED.fullmatch(name) else "gauge"


def _series(query: Query, result: Iterable[object], begin_s: float) -> Iterator[ApiSeries]:
    for row in result:
        if not isinstance(row, dict) or not isinstance(row.get("values"), list):
            continue  # a native histogram, which has no single value
        labels = {str(key): str(value) for key, value in row.get("metric", {}).items()}
        name = query.name or labels.get(NAME, "")
        labels.pop(NAME, None)
        begin = 0
        times = [float(time_s) for time_s, _ in row["values"]]
        while begin < len(times) and times[begin] <= begin_s:
            begin += 1
        if begin < len(times):
            values = [float(value) for _, value in row["values"]]
            yield ApiSeries(name, labels, times[begin:], values[begin:])

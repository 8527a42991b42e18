"""Writes points by the official exporter; an answer that is none is an exception, so that the feed tries again."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import requests
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from requests.adapters import HTTPAdapter
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import secret
from soakwatch.core.tables import harmless
from soakwatch.transfer.sinks.abc import RefusedLine, SinkUnavailableError
from soakwatch_otlp import Otlp
from soakwatch_otlp.points import Points

if TYPE_CHECKING:
    from soakwatch.transfer.sinks.block import Block

MAX_LINES = 5_000  # of a request: about 400 kB, a tenth of what a Collector takes
_MIN_LINES = 50
_MAX_ASKED_S = 300.0
_MAX_REASON = 300
_WORDS = re.compile(rb"[\x20-\x7e]{4,}")
_BAD = frozenset({400, 413, 422})


class _NotTakenError(Exception):
    """A request without a good answer. The exporter would wait and try again: the feed does that, with its backlog."""


class _CountingAdapter(HTTPAdapter):
    """Counts the connections that are made, for urllib3 silently makes a new one where the receiver closed it."""

    def __init__(self) -> None:
        self.connections = 0
        super().__init__()

    def init_poolmanager(self, *sizes: Any, **how: Any) -> None:
        """As it is, with pools whose connections are counted."""
        super().init_poolmanager(*sizes, **how)
        self.poolmanager.pool_classes_by_scheme = {
            "http": self._counting(HTTPConnectionPool),
            "https": self._counting(HTTPSConnectionPool),
        }

    def _counting(self, pool: type[HTTPConnectionPool]) -> type[HTTPConnectionPool]:
        adapter = self

        class Counting(pool.ConnectionCls):  # type: ignore[misc, name-defined]  # its kind depends on the address
            def connect(self) -> None:
                adapter.connections += 1
                super().connect()

        return type(pool.__name__, (pool,), {"ConnectionCls": Counting})


class _Session(requests.Session):
    """A session that keeps how its last request ended, follows no redirect and asks no proxy."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.counting = _CountingAdapter()
        for scheme in ("http://", "https://"):
            self.mount(scheme, self.counting)
        self.answer: requests.Response | None = None
        self.slow = False
        self.untrusted = False

    def send(self, request: requests.PreparedRequest, **how: Any) -> requests.Response:
        """One request. Raises _NotTakenError for every answer but 2xx."""
        self.answer, self.slow, self.untrusted = None, False, False
        try:
            answer = super().send(request, **{**how, "allow_redirects": False})
        except requests.exceptions.SSLError:
            self.untrusted = True
            raise _NotTakenError from None
        except requests.Timeout:
            self.slow = True
            raise _NotTakenError from None
        except requests.RequestException:
            raise _NotTakenError from None
        self.answer = answer
        if not 200 <= answer.status_code < 300:
            raise _NotTakenError
        return answer


class Writer:
    """Writes lines to one receiver; not thread-safe. ``written`` and ``refused`` count lines.

    Raises PlanError if a secret cannot be read.
    """

    def __init__(self, to: Otlp, refuse: Callable[[RefusedLine], None]) -> None:
        if to.ca is not None and not os.access(to.ca, os.R_OK):
            raise PlanError(f"the CA bundle {to.ca} of the sink {to.where} cannot be read: set ca to a PEM file")
        # It logs what is an error's sentence here, with the address and without the remedy.
        logging.getLogger("opentelemetry.exporter.otlp.proto.http.metric_exporter").setLevel(logging.CRITICAL)
        self.to = to
        self.written = self.refused = 0
        self._refuse, self._points, self._size = refuse, Points(to.resource), MAX_LINES
        self._session = _Session()
        headers = {name: secret(reference).reveal() for name, reference in to.headers.items()}
        if to.token is not None:
            headers["authorization"] = f"Bearer {secret(to.token).reveal()}"
        self._exporter = OTLPMetricExporter(
            to.url,
            certificate_file=to.ca,
            headers=headers,
            timeout=to.timeout_s,
            compression=Compression.Gzip if to.gzip else Compression.NoCompression,
            session=self._session,
        )

    def close(self) -> None:
        """Closes the connection."""
        self._exporter.shutdown()

    @property
    def connections(self) -> int:
        """Connections made so far; a new one may mean that the receiver restarted and lost what it took last."""
        return self._session.counting.connections

    @property
    def size(self) -> int:
        """Lines of a request; fewer after the receiver was slow."""
        return self._size

    def recall(self, lines: Iterable[bytes]) -> None:
        """Takes note of where counters that an earlier process sent began anew."""
        self._points.recall(lines)

    def write(self, lines: Block) -> None:
        """Writes all lines, or raises SinkUnavailableError; writing the same lines again changes nothing."""
        if not lines.count:
            return
        bad = self._written(lines.lines())
        if len(bad) == lines.count > 1:
            raise SinkUnavailableError(
                f"{self.to.where} refuses every line ({bad[0].reason}): is it an OTLP receiver, and this its address?"
            )
        for line in bad:
            self.refused += 1
            self._refuse(line)
        self.written += lines.count - len(bad)
        self._size = min(MAX_LINES, self._size + max(1, self._size // 10))

    def try_out(self) -> None:
        """Whether lines would be accepted: an empty request checks address and secret. Raises SinkUnavailableError."""
        self._post(MetricsData([]))

    def _written(self, lines: Sequence[bytes]) -> list[RefusedLine]:
        """Writes lines; returns those that were refused for good."""
        data, count = self._points.data(lines)
        if not count:  # phases, events and others that are no metrics
            return []
        refusal = self._post(data)
        if refusal is None:
            return []
        if len(lines) == 1:
            return [RefusedLine(lines[0], refusal)]
        middle = len(lines) // 2
        return self._written(lines[:middle]) + self._written(lines[middle:])

    def _post(self, data: MetricsData) -> str | None:
        """Sends metrics; returns why the receiver cannot take them, None if it took them."""
        if self._exporter.export(data) is MetricExportResult.SUCCESS:
            self._partial()
            return None
        answer = self._session.answer
        if answer is not None and answer.status_code in _BAD:
            return f"{answer.status_code}: {_message(answer)}" if _message(answer) else str(answer.status_code)
        if answer is None and self._session.slow:
            self._size = max(_MIN_LINES, self._size // 2)
        raise self._unavailable(answer)

    def _partial(self) -> None:
        """Counts what a receiver that took the rest refused; which lines these were, it does not tell."""
        answer = self._session.answer
        if answer is None or not answer.headers.get("content-type", "").startswith("application/x-protobuf"):
            return
        response = ExportMetricsServiceResponse()
        try:
            response.ParseFromString(answer.content)
        except ValueError:
            return
        refused = response.partial_success.rejected_data_points
        if refused:
            self.refused += refused
            reason = harmless(" ".join(response.partial_success.error_message.split()))[:_MAX_REASON]
            self._refuse(RefusedLine(b"", f"{refused} points of a request: {reason or 'no reason given'}"))

    def _unavailable(self, answer: requests.Response | None) -> SinkUnavailableError:
        where = self.to.where
        if answer is None:
            if self._session.untrusted:
                return _wrong(f"{where} has an untrusted certificate or does not speak TLS: set ca, or correct url")
            if self._session.slow:
                return SinkUnavailableError(f"{where} did not answer within {self.to.timeout_s:g} s", slow=True)
            return SinkUnavailableError(f"{where} cannot be reached: is an OTLP receiver running there?")
        status = answer.status_code
        if status in {401, 403}:
            return _wrong(f"{where} does not authorise this request: check token and headers")
        if status in {404, 405}:
            return _wrong(
                f"{where} takes no OTLP metrics over HTTP ({status}): check url and port (4318, for 4317 is gRPC; "
                "Prometheus: http://HOST:9090/api/v1/otlp with --web.enable-otlp-receiver)"
            )
        if 300 <= status < 400:
            return _wrong(f"{where} redirects writes: put the address that it names into the plan")
        message = _message(answer)
        said = f": {message}" if message else ""
        return SinkUnavailableError(f"{where} answers {status}{said}", _asked_s(answer.headers))


def _asked_s(headers: Mapping[str, str]) -> float | None:
    asked = headers.get("Retry-After", "")
    return min(float(asked), _MAX_ASKED_S) if asked.isdecimal() else None


def _message(answer: requests.Response) -> str:
    """What a receiver says: text, or the text within a Status of protobuf."""
    words = b" ".join(_WORDS.findall(answer.content[:2000])).decode("ascii")
    return harmless(" ".join(words.split()))[:_MAX_REASON]


def _wrong(reason: str) -> SinkUnavailableError:
    return SinkUnavailableError(reason, wrong=True)

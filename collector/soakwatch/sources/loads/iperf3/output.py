"""Reads iperf3's output in either form, JSON or text, also mixed."""

from __future__ import annotations

from soakwatch.sources.loads.iperf3.json_output import MAX_DOCUMENT, JsonReader
from soakwatch.sources.loads.iperf3.reports import Report
from soakwatch.sources.loads.iperf3.text_output import TextReader


class AnyReader:
    """Reads either form: outside a document, a line that begins with a brace is JSON."""

    def __init__(self, max_document: int = MAX_DOCUMENT) -> None:
        self._json = JsonReader(max_document)
        self._text = TextReader()

    def feed(self, line: str) -> list[Report]:
        """The reports that this line, without its end, completes. Never raises."""
        if self._json.open or line.startswith("{"):
            return self._json.feed(line)
        if not line.strip():
            return []
        return self._text.feed(line)

    def done(self) -> list[Report]:
        """The output ended: reports that were incomplete."""
        return [*self._json.done(), *self._text.done()]

"""The output of an iperf3 in whichever form: JSON from the first brace on, text otherwise, also one after the other."""

from __future__ import annotations

from soakwatch.sources.loads.iperf3.json_output import MOST_DOCUMENT, JsonReader
from soakwatch.sources.loads.iperf3.said import Said
from soakwatch.sources.loads.iperf3.text_output import TextReader


class AnyReader:
    """Looks at each line outside a JSON document: one that begins with a brace is JSON."""

    def __init__(self, most_document: int = MOST_DOCUMENT) -> None:
        self._json = JsonReader(most_document)
        self._text = TextReader()

    def feed(self, line: str) -> list[Said]:
        """See Reader."""
        if self._json.open or line.startswith("{"):
            return self._json.feed(line)
        if not line.strip():
            return []
        return self._text.feed(line)

    def done(self) -> list[Said]:
        """See Reader."""
        return [*self._json.done(), *self._text.done()]

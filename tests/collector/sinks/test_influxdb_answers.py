"""What a sink makes of a server that finds batches too large, asks for a pause, or is slow."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from soakwatch.sinks.influxdb import LINES, Influxdb, Passing, Refused, Writer

Answer = Callable[[bytes], tuple[int, dict[str, str]]]
OK: tuple[int, dict[str, str]] = (204, {})


@contextmanager
def serving(answer: Answer) -> Iterator[Influxdb]:
    """A server that answers each write as it is told."""

    class Writes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, headers = answer(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status)
            for name, value in {"content-length": "0", **headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Writes) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield Influxdb(f"http://127.0.0.1:{server.server_address[1]}", "o", "b", "env:SINK_TOKEN", timeout_s=1)
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def writing(to: Influxdb, monkeypatch: pytest.MonkeyPatch, refused: list[Refused]) -> Iterator[Writer]:
    monkeypatch.setenv("SINK_TOKEN", "x")
    writer = Writer(to, refused.append)
    try:
        yield writer
    finally:
        writer.close()


def test_a_batch_that_is_too_large_is_halved_until_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[bytes] = []
    refused: list[Refused] = []

    def answer(body: bytes) -> tuple[int, dict[str, str]]:
        if len(body) > 1000:
            return 413, {}
        stored.extend(body.split(b"\n"))
        return OK

    lines = [f"m value={n}.0 {n}".encode() for n in range(500)]
    lines[77] = b'm text="' + b"x" * 2000 + b'" 77'
    with serving(answer) as to, writing(to, monkeypatch, refused) as writer:
        writer.write(lines)
        assert writer.size < LINES
        assert (writer.written, writer.refused) == (499, 1)
    assert stored == [one for one in lines if one is not lines[77]]
    assert [one.line for one in refused] == [lines[77]]


def test_a_busy_server_says_how_long_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda _: (503, {"retry-after": "7"})) as to, writing(to, monkeypatch, []) as writer:
        with pytest.raises(Passing, match="answers 503") as told:
            writer.write([b"m value=1.0 1"])
        assert told.value.after_s == 7.0


def test_a_slow_server_is_sent_less_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = threading.Event()

    def answer(_: bytes) -> tuple[int, dict[str, str]]:
        hold.wait(30)
        return OK

    with serving(answer) as to, writing(to, monkeypatch, []) as writer:
        with pytest.raises(Passing, match="did not answer within 1 s"):
            writer.write([b"m value=1.0 1"])
        assert writer.size == LINES // 2
        hold.set()

"""What a sink makes of whatever a server answers: it waits for what passes, and sets aside what is refused for good."""

from __future__ import annotations

import gzip
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.transfer.sinks.abc import RefusedLine, SinkUnavailableError
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.influxdb.write import MAX_LINES, Writer

Reply = tuple[int, dict[str, str]] | tuple[int, dict[str, str], bytes]
Answer = Callable[[bytes], Reply]
OK: Reply = (204, {})


@contextmanager
def serving(answer: Answer, timeout_s: float = 60) -> Iterator[Influxdb]:
    """A server that answers each write as the test says; the sink waits so long for it."""

    class Writes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, headers, *rest = answer(self.rfile.read(int(self.headers["content-length"])))
            body = rest[0] if rest else b""
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Writes) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield Influxdb(f"http://127.0.0.1:{server.server_address[1]}", "o", "b", "env:SINK_TOKEN", timeout_s)
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def writing(to: Influxdb, monkeypatch: pytest.MonkeyPatch, refused: list[RefusedLine]) -> Iterator[Writer]:
    monkeypatch.setenv("SINK_TOKEN", "x")
    writer = Writer(to, refused.append)
    try:
        yield writer
    finally:
        writer.close()


def test_a_batch_that_is_too_large_is_halved_until_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[bytes] = []
    refused: list[RefusedLine] = []

    def answer(body: bytes) -> Reply:
        if len(body) > 1000:
            return 413, {}
        stored.extend(body.splitlines())
        return OK

    lines = [f"m value={n}.0 {n}".encode() for n in range(500)]
    lines[77] = b'm text="' + b"x" * 2000 + b'" 77'
    with serving(answer) as to, writing(to, monkeypatch, refused) as writer:
        writer.write(lines)
        assert writer.size < MAX_LINES
        assert (writer.written, writer.refused) == (499, 1)
    assert stored == [line for line in lines if line is not lines[77]]
    assert [bad.line for bad in refused] == [lines[77]]


def test_a_busy_server_says_how_long_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda _: (503, {"retry-after": "7"})) as to, writing(to, monkeypatch, []) as writer:
        with pytest.raises(SinkUnavailableError, match="answers 503") as caught:
            writer.write([b"m value=1.0 1"])
        assert caught.value.after_s == 7.0


def test_a_slow_server_is_sent_less_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = threading.Event()

    def answer(_: bytes) -> Reply:
        hold.wait(30)
        return OK

    with serving(answer, timeout_s=1) as to, writing(to, monkeypatch, []) as writer:
        with pytest.raises(SinkUnavailableError, match="did not answer within 1 s"):
            writer.write([b"m value=1.0 1"])
        assert writer.size == MAX_LINES // 2
        hold.set()


@contextmanager
def talking(say: Callable[[socket.socket], None], timeout_s: float = 60) -> Iterator[Influxdb]:
    """A server that reads a request and then does what it likes with the connection."""

    class Talk(StreamRequestHandler):
        def handle(self) -> None:
            length = 0
            while header := self.rfile.readline().strip():
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            self.rfile.read(length)
            with suppress(OSError):
                say(self.connection)

    with ThreadingTCPServer(("127.0.0.1", 0), Talk) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield Influxdb(f"http://127.0.0.1:{server.server_address[1]}", "o", "b", "env:SINK_TOKEN", timeout_s)
        finally:
            server.shutdown()
            thread.join()


def json_body(message: str) -> bytes:
    return json.dumps({"code": "x", "message": message}).encode()


LINES_OF_A_BATCH = [f"m value={n}.0 {n}".encode() for n in range(100)]


@pytest.mark.parametrize(
    ("status", "reason", "wrong"),
    [
        (401, "does not authorise this token for o/b: check token, org and bucket", True),
        (403, "does not authorise this token for o/b", True),
        (404, "has no bucket b in o: create it", True),
        (429, "answers 429: a sentence", False),
        (500, "answers 500: a sentence", False),
        (502, "answers 502", False),
        (503, "answers 503", False),
        (507, "answers 507", False),
    ],
)
def test_what_passes_is_waited_for_and_nothing_is_set_aside(
    status: int, reason: str, wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[RefusedLine] = []
    with (
        serving(lambda _: (status, {}, json_body("a  sentence\x1b[2J"))) as to,
        writing(to, monkeypatch, refused) as writer,
    ):
        with pytest.raises(SinkUnavailableError, match=re.escape(reason)) as caught:
            writer.write(LINES_OF_A_BATCH)
        assert caught.value.wrong is wrong
        assert "\x1b" not in str(caught.value)
        assert (writer.written, writer.refused, refused) == (0, 0, [])


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    "body",
    [b"<html>no such page</html>", b"", b"\xff\xfe\x00", b"[" * 60_000, b"null", b"[]", b'{"message": null}'],
    ids=["page", "nothing", "no text", "deep", "null", "list", "no message"],
)
def test_a_refusal_that_is_not_a_databases_costs_no_line(
    status: int, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[RefusedLine] = []
    with serving(lambda _: (status, {}, body)) as to, writing(to, monkeypatch, refused) as writer:
        with pytest.raises(SinkUnavailableError, match=f"answers {status}"):
            writer.write(LINES_OF_A_BATCH)
        assert refused == []


@pytest.mark.parametrize("status", [400, 413])
def test_who_refuses_every_line_gets_none_set_aside(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[RefusedLine] = []
    with (
        serving(lambda _: (status, {}, json_body("no"))) as to,
        writing(to, monkeypatch, refused) as writer,
    ):
        with pytest.raises(SinkUnavailableError, match="refuses every line"):
            writer.write(LINES_OF_A_BATCH)
        assert (refused, writer.refused) == ([], 0)


def test_a_batch_that_is_dropped_as_a_whole_is_counted_without_many_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    refused: list[RefusedLine] = []

    def answer(body: bytes) -> Reply:
        asked.append(1)
        return 422, {}, json_body(f"partial write: too old dropped={len(body.splitlines())} for database: 0e")

    with serving(answer) as to, writing(to, monkeypatch, refused) as writer:
        writer.write(LINES_OF_A_BATCH)
        assert (writer.written, writer.refused, len(refused)) == (0, 100, 100)
    assert len(asked) == 1


def test_a_great_many_bad_lines_cost_a_bounded_number_of_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    refused: list[RefusedLine] = []

    def answer(body: bytes) -> Reply:
        asked.append(1)
        bad = sum(line.startswith(b"clash") for line in body.splitlines())
        word = f'input field "value" on measurement "clash" is type float dropped={bad}'
        return (422, {}, json_body(word)) if bad else OK

    lines = [f"{'clash' if n % 2 else 'good'} value={n}.0 {n}".encode() for n in range(5000)]
    with serving(answer) as to, writing(to, monkeypatch, refused) as writer:
        writer.write(lines)
        assert (writer.written, writer.refused) == (2500, 2500)
    assert {bad.line for bad in refused} == set(lines[1::2])
    assert len(asked) < 100


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_token_does_not_follow_a_redirection(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[bytes] = []

    def other(body: bytes) -> Reply:
        reached.append(body)
        return OK

    with serving(other) as elsewhere:
        headers = {"location": elsewhere.url.replace("//", "//me:hunter2@") + "/api/v2/write?token=hunter2"}
        with (
            serving(lambda _: (status, headers)) as to,
            writing(to, monkeypatch, []) as writer,
            pytest.raises(SinkUnavailableError, match="redirects writes to http://127") as caught,
        ):
            writer.write(LINES_OF_A_BATCH)
    assert "hunter2" not in str(caught.value)
    assert reached == []


@pytest.mark.parametrize(
    "words",
    [b"", b"HTTP/1.1 2", b"HTTP/1.1 500 no\r\ncontent-length: 1000\r\n\r\n{", b"SSH-2.0-OpenSSH\r\n"],
    ids=["before it", "in its first line", "in its body", "another protocol"],
)
def test_an_answer_that_is_cut_off_is_asked_for_again(words: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with talking(lambda connection: connection.sendall(words)) as to, writing(to, monkeypatch, []) as writer:
        with pytest.raises(SinkUnavailableError, match="closed the connection before it had answered"):
            writer.write(LINES_OF_A_BATCH)
        assert writer.written == 0


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_an_endless_answer_is_not_read_to_its_end(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[int] = []
    part = gzip.compress(b"x" * 10_000_000) if packed else b"x" * 100_000

    def endless(connection: socket.socket) -> None:
        kind = b"content-encoding: gzip\r\n" if packed else b""
        connection.sendall(b"HTTP/1.1 500 no\r\n" + kind + b"\r\n")
        while sum(received) < 2_000_000_000:
            connection.sendall(part)
            received.append(len(part))

    with (
        talking(endless) as to,
        writing(to, monkeypatch, []) as writer,
        pytest.raises(SinkUnavailableError, match="answers 500"),
    ):
        writer.write(LINES_OF_A_BATCH)
    assert sum(received) < 50_000_000


def test_an_answer_that_drips_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 500 no\r\n\r\n")
        while not over.wait(0.05):
            connection.sendall(b"x")

    with talking(drip, timeout_s=1) as to, writing(to, monkeypatch, []) as writer:
        with pytest.raises(SinkUnavailableError, match="did not answer within 1 s"):
            writer.write(LINES_OF_A_BATCH)
        over.set()


def test_a_server_that_accepts_and_never_answers_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        to = Influxdb(f"http://127.0.0.1:{deaf.getsockname()[1]}", "o", "b", "env:SINK_TOKEN", timeout_s=1)
        with writing(to, monkeypatch, []) as writer:
            with pytest.raises(SinkUnavailableError, match="did not answer within 1 s") as caught:
                writer.write(LINES_OF_A_BATCH)
            assert caught.value.slow


def test_success_with_a_long_or_strange_answer_is_success(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda _: (200, {}, b"\xff" * 1_000_000)) as to, writing(to, monkeypatch, []) as writer:
        writer.write(LINES_OF_A_BATCH)
        writer.write(LINES_OF_A_BATCH)
        assert writer.written == 200


def test_no_tls_where_tls_is_meant_is_reported_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        serving(lambda _: OK) as to,
        writing(replace(to, url=to.url.replace("http:", "https:")), monkeypatch, []) as writer,
        pytest.raises(SinkUnavailableError, match="has an untrusted certificate or does not speak TLS"),
    ):
        writer.write(LINES_OF_A_BATCH)


def test_certificates_that_are_not_there_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SINK_TOKEN", "x")
    with pytest.raises(PlanError, match=r"no-such\.pem of the sink .* cannot be read"):
        Writer(Influxdb("https://127.0.0.1:9", "o", "b", "env:SINK_TOKEN", ca="no-such.pem"), print)

"""Addresses, and answers that are wrong, cut, huge or refused: one sentence each, without the token in it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.collector.sources.net.conftest import make

from soakwatch.sources.tables.errors import DataError
from soakwatch.transfer.sinks.addresses import is_database
from soakwatch.transfer.sinks.influxdb.read import asking
from soakwatch.transfer.sinks.influxdb.read.address import Database, database_of
from soakwatch.transfer.sinks.influxdb.read.asking import Influx, quoted, text
from soakwatch_testing.influxd import Influxd

TLS_HELLO = b"\x16"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
ROWS = b'{"results":[{"series":[{"name":"m","columns":["time","v"],"values":[[1,2.5]]%b}]%b}]}\n'
WHOLE, FIRST = ROWS % (b"", b""), ROWS % (b',"partial":true', b',"partial":true')


@contextmanager
def answering(*answers: bytes, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server that gives each request the next answer and closes; its address."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.settimeout(10)

        def serve() -> None:
            for answer in answers:
                with ExitStack() as opened, suppress(ssl.SSLError, ConnectionError):
                    connection = opened.enter_context(listener.accept()[0])
                    connection.settimeout(10)
                    if tls is not None:
                        connection = opened.enter_context(tls.wrap_socket(connection, server_side=True))
                    held = b""
                    while not _is_whole(held):
                        more = connection.recv(65_536)
                        if not more:
                            break
                        held += more
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        stack.callback(thread.join)
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{listener.getsockname()[1]}"


def _is_whole(request: bytes) -> bool:
    head, end, body = request.partition(b"\r\n\r\n")
    length = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    if request.startswith(TLS_HELLO):
        return True
    return bool(end) and len(body) >= (int(length[0]) if length else 0)


def sized(body: bytes, more: int = 0) -> bytes:
    """An answer that says how long it is, and lies by ``more``."""
    return HEAD + b"content-length: %d\r\nconnection: close\r\n\r\n" % (len(body) + more) + body


def test_the_pieces_of_an_answer_come_one_by_one() -> None:
    with answering(sized(FIRST + WHOLE)) as url, Influx(Database(url, "b")) as influx:
        chunks = list(influx.chunks("SELECT v FROM m"))
    assert [(chunk.name, chunk.columns, chunk.rows) for chunk in chunks] == [("m", ("time", "v"), [[1, 2.5]])] * 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (sized(FIRST), "cut its answer short: try again"),
        (sized(b""), "cut its answer short"),
        (sized(WHOLE, 100), "cut its answer short"),
        (sized(WHOLE[:40]), "does not answer like InfluxDB, or only with half an answer"),
        (sized(b"<html>welcome</html>"), "does not answer like InfluxDB"),
        (sized(b"[1, 2]"), "does not answer like InfluxDB"),
        (sized(b'{"results":[{"series":[{"name":"m"}]}]}'), "does not answer like InfluxDB"),
        (sized(b'{"error":"no"}'), "says: no"),
        (b"", "cut its answer short"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "cut its answer short"),
        (
            b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n",
            "does not authorise this token to read b: give token=env:NAME",
        ),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "has no bucket 'b', or is not InfluxDB"),
        (b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n", "answers 302"),
        (b'HTTP/1.1 503 Busy\r\ncontent-length: 18\r\n\r\n{"message":"full"}', "answers 503: full"),
    ],
)
def test_a_bad_answer_is_one_sentence(answer: bytes, message: str) -> None:
    with answering(answer) as url, Influx(Database(url, "b")) as influx, pytest.raises(DataError) as caught:
        list(influx.chunks("SELECT v FROM m"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_https_is_spoken_with_whom_the_file_of_certificates_trusts(tmp_path: Path) -> None:
    ours, other = make(tmp_path, "ours"), make(tmp_path, "other")

    def asked(url: str, ca: Path | None) -> int:
        with Influx(Database(url, "b", ca=None if ca is None else str(ca))) as influx:
            return len(list(influx.chunks("SELECT v FROM m")))

    with answering(sized(WHOLE), b"", b"", tls=ours.server()) as url:
        assert asked(url, ours.certificate) == 1
        for ca in (other.certificate, None):
            with pytest.raises(DataError, match="presents a certificate that is not trusted: give ca=FILE"):
                asked(url, ca)
    plain = answering(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with plain as url, pytest.raises(DataError, match=r"does not speak TLS: write influxdb:// without tls="):
        asked(url.replace("http:", "https:"), None)
    with pytest.raises(DataError, match=r"cannot be used: it holds no certificate"):
        asked("https://127.0.0.1:9", tmp_path / "ours.key")
    with pytest.raises(DataError, match=r"cannot be used: No such file"):
        asked("https://127.0.0.1:9", tmp_path / "missing.crt")


def test_an_endless_line_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_MAX_CHUNK", 2**20)
    with (
        answering(sized(b"x" * 2**21)) as url,
        Influx(Database(url, "b")) as influx,
        pytest.raises(DataError, match="1 MiB"),
    ):
        list(influx.chunks("SELECT v FROM m"))


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        database = Database(f"http://127.0.0.1:{listener.getsockname()[1]}", "b", timeout_s=1.0)
        with (
            Influx(database) as influx,
            pytest.raises(DataError, match="did not answer within 1 s: try a longer"),
        ):
            list(influx.chunks("SELECT v FROM m"))


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("influxdb:///soak", "has no host: write influxdb://HOST:8086/BUCKET"),
        ("influxdb://h", "the bucket is missing"),
        ("influxdb://h:no/soak", "wrong host or port"),
        ("influxdb://me:hunter2@h/soak", "this address holds a user or password"),
        ("influxdb://h/soak?token=hunter2", "a token is never written into an address"),
        ("influxdb://h/soak?token=env:T&tokne=hunter2", "unknown key 'tokne'; did you mean 'token'?"),
        ("influxdb://h/soak?run=a&run=b", "the key run is given twice"),
        ("influxdb://h/soak?run=", "the key run has no value"),
        ("influxdb://h/soak?bucket=other", "the buckets 'soak' and 'other' are both named"),
        ("influxdb://h/soak?tls=perhaps", "tls=perhaps is not a yes or no"),
        ("influxdb://h/soak?from=yesterday", "from=yesterday is not a time"),
        ("influxdb://h/soak?from=2026-01-02T00:00Z&to=2026-01-01T00:00Z", "is not after from=2026-01-02T00:00Z: swap"),
        ("influxdb://h/soak?run=a&host=b", "run=… reads the whole run: leave out from, to and host"),
        ("influxdb://h/soak?timeout=soon", "timeout:"),
    ],
)
def test_an_address_that_cannot_be_is_one_sentence_without_the_secret(address: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        database_of(address)
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_an_address_says_where_and_what() -> None:
    database = database_of(
        "influxdb://[::1]:9999/my%20bucket?org=lab&token=file:t&from=2026-01-01T00:00:00Z&tls=1&host=a%26b"
    )
    assert (database.url, database.bucket, database.org, database.token) == (
        "https://[::1]:9999",
        "my bucket",
        "lab",
        "file:t",
    )
    assert (database.from_ns, database.to_ns, database.host, database.run) == (
        1_767_225_600_000_000_000,
        None,
        "a&b",
        None,
    )
    assert database_of("influxdbs://h/b").url == "https://h:8086"
    assert is_database("influxdbs://h/b")
    assert not is_database("runs/influxdb")


@pytest.mark.parametrize("secret", ["", "hunter2\n\nmore", "ümlaut"])
def test_a_token_that_cannot_be_one_is_one_sentence_without_it(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READ_TOKEN", secret)
    with (
        pytest.raises(DataError) as caught,
        Influx(Database("http://127.0.0.1:9", "b", token="env:READ_TOKEN")) as influx,
    ):
        list(influx.chunks("SELECT v FROM m"))
    assert "READ_TOKEN" in str(caught.value)
    assert secret == "" or secret[:3] not in str(caught.value)


@pytest.mark.parametrize("name", ['a "b"', "it's", "back\\", "näme", "a,b=c d", "new\nline"])
def test_hostile_names_come_back_from_a_real_server(
    name: str, influxd: Influxd, address_of: Callable[..., str]
) -> None:
    database = database_of(address_of("names"))
    from soakwatch.transfer.sinks.lines import line, measurement, tag

    head = f"{measurement(name)},t={tag(name)}"
    influxd.write(line(head, {name: 1.5}, 1000), "names").raise_for_status()
    shown = name.replace("\n", "\u240a").replace("back\\", "back\u2216")
    with Influx(database) as influx:
        asked = f"SELECT {quoted(shown)} FROM {quoted(shown)} WHERE t = {text(shown)} GROUP BY *"
        (chunk,) = influx.chunks(asked)
    assert (chunk.name, chunk.tags, chunk.rows) == (shown, {"t": shown}, [[1000, 1.5]])

"""BER and messages: what is written is read, what is broken is refused, whatever it is."""

from __future__ import annotations

import random

import pytest
from tests.collector.sources.snmp.doubles import answer
from tests.collector.sources.snmp.message import (
    Engine,
    community_message,
    object_id,
    parse_message,
    request,
    user_message,
)

from soakwatch.core.errors import PlanError
from soakwatch.sources.transport.snmp import ber
from soakwatch.sources.transport.snmp.datagram import PLAIN, Summary, inspect
from soakwatch.sources.transport.snmp.request_limits import batches, halves, without
from soakwatch.sources.transport.snmp.snmp_access import Access, check
from soakwatch.sources.transport.snmp.snmp_errors import FailureKind, SnmpPollError, refused

ASKED = community_message(1, "public", request(("1.3.6.1.2.1.1.3.0",), 77))


def test_numbers_and_object_identifiers_come_back() -> None:
    """Of every size that SNMP has."""
    for number in (0, 1, -1, 127, 128, -128, -129, 2**31 - 1, 2**32 - 1, 2**64 - 1):
        assert ber.number(ber.items(ber.integer(number))[0][1]) == number
    for oid in ("1.3.6.1", "0.0", "2.999.4294967295", "1.3.6.1.4.1.9.9.109"):
        assert ber.dotted(ber.items(object_id(oid))[0][1]) == oid


def test_a_glance_sees_what_the_library_hides() -> None:
    """Errors and reports in plain text; good answers and encrypted ones pass."""
    good = answer(ASKED, [("1.3.6.1.2.1.1.3.0", ber.integer(5))])
    assert inspect(good) == PLAIN
    bad = answer(ASKED, [("1.3.6.1.2.1.1.3.0", ber.tlv(5, b""))], 5, 1)
    assert inspect(bad) == Summary(5, 1)
    with pytest.raises(ber.MalformedError):
        inspect(ASKED)  # a request is no answer
    with pytest.raises(ber.MalformedError):
        inspect(good[:-1])


def test_broken_datagrams_are_refused_and_nothing_else() -> None:
    """10,000 random and mutated datagrams: MalformedError or a reading, nothing else and nothing slow."""
    dice = random.Random(7)
    engine = Engine(b"engine", 1, 2)
    seeds = [
        answer(ASKED, [("1.3.6.1.2.1.1.3.0", ber.integer(5))] * 5),
        user_message(1, engine, "user", request(("1.3.6.1.2.1.1.3.0",), 1), b"k" * 20, "SHA"),
        user_message(1, engine, "", request((), 1)),
    ]
    read = refused_ones = 0
    for number in range(10_000):
        data = bytearray(dice.choice(seeds)) if number % 4 else bytearray(dice.randbytes(dice.randrange(120)))
        for _ in range(dice.randrange(4)):
            if data:
                data[dice.randrange(len(data))] = dice.randrange(256)
        data = data[: dice.randrange(len(data) + 1)] if dice.random() < 0.2 else data
        for parse in (inspect, parse_message):
            try:
                parse(bytes(data))
                read += 1
            except ber.MalformedError:
                refused_ones += 1
    assert read > 100
    assert refused_ones > 100


def test_the_quick_parser_of_a_pair_agrees_with_the_full_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 mutated answers with values of all kinds: the same verdict with and without it."""
    dice = random.Random(8)
    values = [
        ber.tlv(tag, dice.randbytes(size))
        for tag in (0x02, 0x04, 0x05, 0x06, 0x40, 0x41, 0x44, 0x46, 0x80, 0x82)
        for size in (0, 1, 4, 8, 9, 10, 130)
    ]
    datagrams = []
    for _ in range(20_000):
        rows = [(f"1.3.6.1.{dice.randrange(9)}.{dice.randrange(10**6)}", dice.choice(values)) for _ in range(3)]
        data = bytearray(answer(ASKED, rows))
        for _ in range(dice.randrange(3)):
            data[dice.randrange(len(data) // 2, len(data))] = dice.randrange(256)
        datagrams.append(bytes(data))

    def verdict(data: bytes) -> object:
        try:
            return inspect(data)
        except ber.MalformedError as error:
            return str(error)

    quick = [verdict(data) for data in datagrams]
    assert 1000 < sum(summary == PLAIN for summary in quick) < 19_000
    monkeypatch.setattr("soakwatch.sources.transport.snmp.datagram._skip_common", lambda *_: 0)
    assert quick == [verdict(data) for data in datagrams]


def test_a_request_is_cut_where_its_answer_says() -> None:
    """Index, halves, and v1's noSuchName, which is no refusal."""
    batch = ("1", "2", "3")
    assert without(batch, refused("x", 5, 2)) == ([("1", "3")], "2")
    assert without(batch, refused("x", 2, 3)) == ([("1", "2")], None)
    assert without(batch, refused("x", 5, 0)) == ([("1", "2"), ("3",)], None)
    assert without(("1",), refused("x", 5, 9)) == ([], "1")
    with pytest.raises(SnmpPollError, match="authorizationError"):
        without(batch, refused("x", 16, 0))
    assert halves(("1",)) == []
    assert batches("abcabc", 2, "c") == [("a", "b"), ("c",)]


@pytest.mark.parametrize(
    ("access", "remedy"),
    [
        (Access("h", 161, "3"), "write user: NAME"),
        (Access("h", 161, "3", user="u", auth="short"), "shorter than the 8 characters"),
        (Access("h", 161, "3", user="u", auth="long enough", priv="short"), "key of priv"),
        (Access("h", 161, "3", user="u", priv="long enough"), "give auth as well"),
        (Access("h", 161, "3", user="u" * 33), "32 bytes"),
        (Access("h", 161, "2c", community="c", user="u"), "version: 3"),
        (Access("h", 161, "1"), "community is empty"),
    ],
)
def test_credentials_that_cannot_work_are_refused_before_anything_is_sent(access: Access, remedy: str) -> None:
    """In one sentence with the target's name, and without the key."""
    with pytest.raises(PlanError, match=remedy) as refusal:
        check("fw1", access)
    assert str(refusal.value).startswith("fw1: ")
    assert "long enough" not in str(refusal.value)
    assert "long enough" not in repr(access)


def test_every_kind_of_failure_is_one_sentence() -> None:
    """With the address in front and no hole left in it."""
    for kind in FailureKind:
        text = str(SnmpPollError(kind, "h:161", detail="this", seconds=1.0))
        assert text.startswith("h:161: ")
        assert "{" not in text
        assert not text.endswith(".")

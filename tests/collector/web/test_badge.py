"""Badges that the server draws: whose verdict they show, who may see them, and that none is shown after it is old."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import httpx
import pytest
from tests.collector.web.test_runs_page import judged, visitor

from soakwatch.core.labels import LABELS_KEY
from soakwatch.record import Record
from soakwatch.record.writer_lock import release_lock, take_lock

Recorded = Callable[..., Path]
__all__ = ["visitor"]


def words(answer: httpx.Response) -> str:
    """What a badge says to those who do not see it."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/svg+xml"
    return ET.fromstring(answer.content).attrib["aria-label"]


@pytest.fixture
def three(recorded: Recorded) -> list[Path]:
    """A run that failed, a newer one that passed, and one of another plan that is the newest."""
    folders = [
        judged(recorded("a", ended=True), "fail", run="night"),
        judged(recorded("b", ended=True), "pass", run="night"),
        judged(recorded("c", ended=True), "inconclusive", run="weekend"),
    ]
    for number, folder in enumerate(folders):
        with Record.open(folder) as record:
            record.set_meta(LABELS_KEY, json.dumps({"release": f"7.{number}"}))
    return folders


@pytest.mark.usefixtures("three")
def test_the_newest_run_of_a_plan_gives_the_badge(visitor: httpx.Client) -> None:
    """By plan, target and label; the newest of all without them. A run by its name, or last."""
    assert words(visitor.get("/api/badge.svg?plan=night")).startswith("night: ✓ pass · ")
    assert words(visitor.get("/api/badge.svg?plan=night&label=release%3D7.0")).startswith("night: ✗ fail · ")
    assert words(visitor.get("/api/badge.svg?target=dut")).startswith("weekend: ? inconclusive · ")
    assert words(visitor.get("/api/badge.svg")) == words(visitor.get("/api/runs/last/badge.svg"))
    assert words(visitor.get("/api/runs/a/badge.svg")).startswith("night: ✗ fail · ")


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("query", "status", "sentence"),
    [
        ("plan=nihgt", 404, "there is no run of the plan 'nihgt'; did you mean 'night'?"),
        ("plan=night&target=fw9", 404, "no run of the plan 'night' has the target 'fw9'"),
        ("target=dut&label=release%3D9", 404, "no run has the target 'dut' and the label release=9"),
        ("label=release", 400, "NAME=VALUE"),
    ],
)
def test_no_badge_is_drawn_where_there_is_no_run(visitor: httpx.Client, query: str, status: int, sentence: str) -> None:
    """One sentence, and never a verdict of something else."""
    answer = visitor.get(f"/api/badge.svg?{query}")
    assert answer.status_code == status
    assert sentence in answer.json()["error"]


def test_a_run_that_goes_on_has_not_passed(recorded: Recorded, visitor: httpx.Client) -> None:
    """No failure so far, in grey; and of one that broke off nothing is known."""
    folder = recorded("now")
    lock = take_lock(folder / "record.sqlite")
    try:
        assert "no failure so far" in words(visitor.get("/api/badge.svg"))
    finally:
        release_lock(lock)
    assert "inconclusive" in words(visitor.get("/api/badge.svg"))


def test_a_badge_is_asked_for_again_and_sent_when_it_changed(recorded: Recorded, visitor: httpx.Client) -> None:
    """No cache shows last night's: each asks, and gets 304 while nothing has changed."""
    folder = judged(recorded("run", ended=True), "pass", run="night")
    first = visitor.get("/api/badge.svg?plan=night")
    assert first.headers["cache-control"] == "private, no-cache"
    known = {"if-none-match": first.headers["etag"]}
    again = visitor.get("/api/badge.svg?plan=night", headers=known)
    assert (again.status_code, again.content) == (304, b"")
    judged(folder, "fail")
    assert words(visitor.get("/api/badge.svg?plan=night", headers=known)).startswith("night: ✗ fail · ")


@pytest.mark.usefixtures("three")
def test_nobody_without_a_token_sees_a_badge(visitor: httpx.Client) -> None:
    """As every other page; the view-only link is enough."""
    del visitor.headers["authorization"]
    for path in ("/api/badge.svg", "/api/runs/last/badge.svg"):
        assert visitor.get(path).status_code == 401

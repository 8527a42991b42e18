"""Deleting a run: what is lost is reported, its name is wanted, and what must not be deleted is not."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import jsonschema
import pytest

from soakwatch.core.errors import RecordError
from soakwatch.judge.baseline import META as BASELINE
from soakwatch.judge.baseline import BaselineSnapshot
from soakwatch.plan.web import WebPlan
from soakwatch.record import Artifact, Record
from soakwatch.record.writer_lock import release_lock, take_lock
from soakwatch.runs.delete_run import delete
from soakwatch.web.access import Token, derived
from soakwatch.web.json_runs import LOSS
from soakwatch.web.run_folder import RunFolder
from soakwatch.web.server import serve
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window

Recorded = Callable[..., Path]
TOKEN = Token("a token for tests")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Where all runs of the folder are served."""
    (tmp_path / "runs").mkdir(exist_ok=True)
    with serve(WebPlan(listen="127.0.0.1:0"), TOKEN, RunFolder(tmp_path / "runs")) as served:
        yield served.url


@pytest.fixture
def actor(server: str) -> Iterator[httpx.Client]:
    """Someone with the token."""
    headers = {"authorization": "Bearer a token for tests"}
    with httpx.Client(base_url=server, headers=headers, trust_env=False, verify=False, timeout=240) as client:
        yield client


def summaries_read(client: httpx.Client) -> None:
    """Wait until all runs have been read."""
    deadline = time.monotonic() + 120
    while (progress := client.get("/api/summaries").json())["read"] < progress["there"]:
        assert time.monotonic() < deadline, "the runs were not read within 120 s"


def test_what_will_be_lost_is_shown_first(recorded: Recorded, actor: httpx.Client) -> None:
    """Samples, hours, findings, events, files, size, who borrowed its baseline, and files of others in its folder."""
    folder, other = recorded("night", ended=True), recorded("later", ended=True)
    with Record.open(folder) as record:
        bad = Finding("reboot", 1, Outcome.FAIL, "dut", "", "", Window(0, 1), "as defined", "1 reboot", 1)
        record.put_findings([bad], live=False, judged_ns=1)
        record.set_meta("verdict", "fail")
        record.add_event("dut", Event("failover", "dut", "", time.time_ns(), None), "user")
        record.keep_artifact(Artifact("logs/a.log", "text/plain", b"x"))
    (folder / "report.html").write_text("<p>")
    (folder / "notes <b>.txt").write_text("mine")
    with Record.open(other) as record:
        record.set_meta(BASELINE, BaselineSnapshot("night", Window(0, 1), ()).text())
    summaries_read(actor)
    loss = actor.get("/api/runs/night/loss").json()
    jsonschema.validate(loss, LOSS)
    assert (loss["samples"], loss["findings"], loss["refusal"]) == (601, 1, "")
    assert (loss["others"], loss["lends_to"]) == (["notes <b>.txt"], ["later"])
    assert loss["lost"][:3] == ["601 samples of 10 min", "1 finding, 1 of them failed", "1 event"]
    assert loss["lost"][3] == "1 file stored with the run (captures, logs)"
    assert loss["bytes"] == sum(file.stat().st_size for file in folder.iterdir())


def test_it_goes_as_a_whole_and_only_when_its_name_is_typed(
    recorded: Recorded, actor: httpx.Client, tmp_path: Path
) -> None:
    """Without its name nothing happens; with it the folder is gone, and no other one with it."""
    folder, other = recorded("night", ended=True), recorded("night2", ended=True)
    for query in ("", "?confirm=", "?confirm=nigh", "?confirm=last", "?confirm=night2"):
        answer = actor.delete(f"/api/runs/night{query}")
        assert (answer.status_code, "confirm" in answer.json()["error"]) == (400, True), query
    for run_path in ("last?confirm=last", "last?confirm=night2", "night/../night?confirm=night2"):
        assert actor.delete(f"/api/runs/{run_path}").status_code in {400, 404}, run_path
    assert folder.is_dir()
    assert actor.delete("/api/runs/night?confirm=night").json() == {"deleted": "night"}
    assert sorted(path.name for path in (tmp_path / "runs").iterdir() if path.is_dir()) == [other.name]
    assert actor.delete("/api/runs/night?confirm=night").status_code == 404
    assert actor.get("/api/summaries").json()["there"] == 1


def test_a_viewer_deletes_nothing(recorded: Recorded, server: str) -> None:
    """The view token, no token, and another site's page with the token are refused."""
    folder = recorded("night", ended=True)
    path = "/api/runs/night?confirm=night"
    with httpx.Client(base_url=server, trust_env=False, verify=False, timeout=240) as client:
        assert client.delete(path).status_code == 401
        viewer = {"authorization": f"Bearer {derived(TOKEN, 'view')}"}
        assert client.get("/api/runs/night/loss", headers=viewer).status_code == 200
        assert client.delete(path, headers=viewer).status_code == 403
        foreign = {"authorization": "Bearer a token for tests", "origin": "http://elsewhere.example"}
        assert client.delete(path, headers=foreign).status_code == 403
    assert folder.is_dir()


def test_a_run_that_is_being_written_stays(recorded: Recorded, actor: httpx.Client) -> None:
    """It says so beforehand, and refuses; so does the function itself, whoever calls it."""
    folder = recorded("night")
    lock = take_lock(folder / "record.sqlite")
    try:
        assert "being written" in actor.get("/api/runs/night/loss").json()["refusal"]
        answer = actor.delete("/api/runs/night?confirm=night")
        assert (answer.status_code, "stop the run first" in answer.json()["error"]) == (409, True)
        with pytest.raises(RecordError, match="being written"):
            delete(folder)
    finally:
        release_lock(lock)
    assert (folder / "record.sqlite").is_file()


def test_what_is_a_link_or_holds_other_runs_is_left_to_people(
    recorded: Recorded, actor: httpx.Client, tmp_path: Path
) -> None:
    """A link leads elsewhere, and a folder with runs inside would take them along."""
    (tmp_path / "elsewhere").mkdir()
    real = recorded("night", ended=True).rename(tmp_path / "elsewhere" / "night")
    (tmp_path / "runs" / "night").symlink_to(real)
    outer = recorded("outer", ended=True)
    recorded("inner", ended=True).rename(outer / "inner")
    for name, why in (("night", "is a link"), ("outer", "holds other runs")):
        answer = actor.delete(f"/api/runs/{name}?confirm={name}")
        assert (answer.status_code, why in answer.json()["error"]) == (409, True), name
    assert (real / "record.sqlite").is_file()
    assert (outer / "inner" / "record.sqlite").is_file()


def test_links_inside_are_not_followed(recorded: Recorded, actor: httpx.Client, tmp_path: Path) -> None:
    """What a link in the folder points at stays."""
    folder = recorded("night", ended=True)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("mine")
    (folder / "link").symlink_to(tmp_path / "precious")
    assert actor.delete("/api/runs/night?confirm=night").status_code == 200
    assert (tmp_path / "precious" / "file").read_text() == "mine"


def test_a_record_that_cannot_be_read_can_be_deleted(actor: httpx.Client, tmp_path: Path) -> None:
    """Damaged records take room too."""
    (tmp_path / "runs" / "damaged").mkdir()
    (tmp_path / "runs" / "damaged" / "record.sqlite").write_bytes(b"no record at all")
    loss = actor.get("/api/runs/damaged/loss").json()
    assert (loss["refusal"], loss["bytes"]) == ("", 16)
    assert actor.delete("/api/runs/damaged?confirm=damaged").status_code == 200
    assert not (tmp_path / "runs" / "damaged").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may change every folder")
def test_a_folder_that_cannot_be_changed_keeps_the_run(recorded: Recorded, actor: httpx.Client) -> None:
    """One sentence, and nothing is half gone."""
    folder = recorded("night", ended=True)
    folder.parent.chmod(0o500)
    try:
        answer = actor.delete("/api/runs/night?confirm=night")
        assert (answer.status_code, "cannot be deleted" in answer.json()["error"]) == (503, True)
        assert (folder / "record.sqlite").is_file()
    finally:
        folder.parent.chmod(0o700)

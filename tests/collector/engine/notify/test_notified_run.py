"""A whole run by its command that tells a webhook, a mailbox and someone who is not there; and the test command."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
from pathlib import Path

import pytest
from tests.collector.engine.notify.notify_kit import PASSWORD, Mails, mails, posts
from tests.collector.engine.watched_run import UNTIL_OVER, acting, end_run, wait_for_events, wait_for_polls
from tests.commands import Command, environment, start, wait_until
from tests.in_process import command_here

from soakwatch.engine.notify.policy import FAILED, SENT
from soakwatch.record import RecordView
from soakwatch_model.finding import Outcome
from soakwatch_testing.ports import free_port

TOKEN = "T0K3N-IN-PATH"


@pytest.fixture
def soakwatch(tmp_path: Path) -> Command:
    """Runs a command in an empty folder, in this process; errors are printed among the rest."""
    return command_here(tmp_path, merged=True)


def attached(server: Mails) -> bytes:
    """The file of the last mail."""
    reports = [
        part.get_payload(decode=True) for part in server.taken[-1].walk() if part.get_filename() == "report.html"
    ]
    assert isinstance(reports[0], bytes)
    return reports[0]


@pytest.mark.usefixtures("sent_here")
def test_a_run_tells_its_start_and_its_end_with_the_report(
    tmp_path: Path, soakwatch: Command, caplog: pytest.LogCaptureFixture
) -> None:
    """The watched process is killed: verdict, first failure and report arrive; who is not there is one complaint and an
    event; no address is in any file or line."""
    victim = subprocess.Popen(["sleep", "300"])
    down, run = free_port(), tmp_path / "run"

    def acts() -> None:
        wait_for_polls(run)
        victim.kill()
        victim.wait()
        wait_for_events(run, "process.exit")
        end_run(run)

    try:
        with posts() as hook, mails() as mailbox:
            (tmp_path / "plan.yaml").write_text(f"""\
name: told
phases: {UNTIL_OVER}
targets: {{dut: {{sources: [{{local: {{interval: 200ms, timeout: 10s}}}}]}}}}
watch: {{processes: [{{pid: {victim.pid}, name: victim}}]}}
notify:
  - {{to: env:SOAK_HOOK, on: [start, failure, end]}}
  - {{to: env:SOAK_MAIL}}
  - {{to: env:SOAK_DOWN, on: end}}
""")
            addresses = {
                "SOAK_HOOK": f"json://127.0.0.1:{hook.port}/{TOKEN}",
                "SOAK_MAIL": mailbox.address(),
                "SOAK_DOWN": f"json://soak:{PASSWORD}@127.0.0.1:{down}/{TOKEN}",
            }
            with acting(acts):
                done = soakwatch("run", "plan.yaml", "--into", "run", **addresses)
    finally:
        victim.kill()
        victim.wait()
    assert done.returncode == 1, done.stdout
    start, *live, end = (json.loads(body) for body in hook.bodies)
    # the crash wakes the live judge, which is done before the end or is not: what it tells is that failure, once
    assert [message["title"].partition(":")[0] for message in live] in ([], ["Failing told"])
    assert (start["title"], start["type"]) == ("Started told: 10 min on dut", "info")
    assert "Page: http://127.0.0.1:" in start["message"]
    assert end["title"].startswith("FAIL told: victim on dut exited and is still down at ")
    assert end["type"] == "failure"
    assert "First failure: " in end["message"]
    assert f"{tmp_path}/run" in end["message"]
    assert "Page:" not in end["message"], "nobody serves it any more"
    page = (tmp_path / "run/report.html").read_bytes()
    assert base64.b64decode(end["attachments"][0]["base64"]) == page
    *before, mail = mailbox.taken
    assert len(before) == len(live)
    assert mail["subject"] == end["title"]
    assert attached(mailbox) == page
    with RecordView.open(tmp_path / "run") as view:
        events = [stored.event for stored in view.events() if stored.event.kind in {SENT, FAILED}]
    sent_events = [(event.kind, event.detail["to"], event.detail["what"]) for event in events]
    assert sorted(sent_events) == sorted(
        [
            (SENT, "env:SOAK_HOOK", "start"),
            (SENT, "env:SOAK_HOOK", "end"),
            (SENT, "env:SOAK_MAIL", "end"),
            (FAILED, "env:SOAK_DOWN", "end"),
            *[(SENT, "env:SOAK_HOOK", "failure")] * len(live),
            *[(SENT, "env:SOAK_MAIL", "failure")] * len(live),
        ]
    )
    assert "waiting for notifications, 30 s at most" in done.stdout
    complaint = "notify env:SOAK_DOWN: json did not get the message of the end: the connection was refused"
    said = "\n".join(record.getMessage() for record in caplog.records if record.name == "soakwatch")
    assert said.count(complaint) == 1
    kept = b"".join(file.read_bytes() for file in (tmp_path / "run").iterdir()) + (done.stdout + said).encode()
    for word in (TOKEN, PASSWORD, f"127.0.0.1:{hook.port}", f"127.0.0.1:{down}"):
        assert word.encode() not in kept
    again = soakwatch("judge", "run", "--json", "again.json")
    assert again.returncode == 1
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads((tmp_path / "run/verdict.json").read_text())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_live_failure_is_sent_once_also_over_a_crash(tmp_path: Path, soakwatch: Command) -> None:
    """The watched process is gone: the failure is reported live, with the page. kill -9, and the resumed run judges
    again, and tells neither start nor failure a second time."""
    victim = subprocess.Popen(["sleep", "600"])
    with posts() as hook:
        (tmp_path / "plan.yaml").write_text(f"""\
name: told
duration: 150s
targets: {{dut: {{sources: [{{local: {{interval: 500ms}}}}]}}}}
watch: {{processes: [{{pid: {victim.pid}, name: victim}}]}}
events: [{{kind: crash, at: 4s, run: [sh, -c, "kill -9 {victim.pid}"]}}]
notify: [{{to: env:SOAK_HOOK, on: [start, failure, end], attach: none}}]
""")
        around = environment() | {"SOAK_HOOK": f"json://127.0.0.1:{hook.port}"}
        words, silent = ("run", "plan.yaml", "--into", "run"), subprocess.DEVNULL
        first = start(words, tmp_path, stdout=silent, stderr=silent, env=around)
        try:
            hook.wait_for(2)
            wait_until(lambda: notified(tmp_path / "run") == ["start", "failure"], "the record of both messages")
        finally:
            first.send_signal(signal.SIGKILL)
            first.wait()
            victim.kill()
            victim.wait()
        done = soakwatch("resume", "run", "--no-web", SOAK_HOOK=around["SOAK_HOOK"])
        assert done.returncode == 1, done.stdout
    begin, failure, end = (json.loads(body) for body in hook.bodies)
    assert begin["title"].startswith("Started told")
    assert failure["title"].startswith("Failing told: dut ")
    assert "only the final verdict counts" in failure["message"]
    assert "Page: http://127.0.0.1:" in failure["message"]
    assert end["title"].startswith("FAIL told: victim on dut exited and is still down at ")
    assert notified(tmp_path / "run") == ["start", "failure", "end"]
    with RecordView.open(tmp_path / "run") as view:
        live_failures = [finding.rule for finding in view.findings(live=True) if finding.outcome is Outcome.FAIL]
    assert live_failures, "the second life looked, and the failure stood"


def notified(run: Path) -> list[str]:
    """What the record says was sent."""
    with RecordView.open(run) as view:
        return [stored.event.detail["what"] for stored in view.events() if stored.event.kind == SENT]


@pytest.mark.usefixtures("sent_here")
def test_the_test_command(tmp_path: Path, soakwatch: Command) -> None:
    """Each recipient gets one message and is listed; one that fails makes the exit code 2."""
    (tmp_path / "plan.yaml").write_text(
        "name: told\nduration: 1h\ntargets: {dut: {sources: [local]}}\n"
        "notify: [{to: env:SOAK_HOOK}, {to: env:SOAK_MAIL, attach: none}]\n"
    )
    with posts() as hook, mails() as mailbox:
        addresses = {"SOAK_HOOK": f"json://127.0.0.1:{hook.port}/{TOKEN}", "SOAK_MAIL": mailbox.address()}
        done = soakwatch("notify", "plan.yaml", "--test", **addresses)
        assert (done.returncode, done.stdout) == (
            0,
            "env:SOAK_HOOK (json): sent, with an attachment\nenv:SOAK_MAIL (mailto): sent\n",
        )
        tested = soakwatch("notify", "plan.yaml", **addresses)
        assert tested.returncode == 0
        assert "notify: env:SOAK_MAIL by mailto on failure and end" in tested.stdout
        checked = soakwatch("check", "plan.yaml", "--no-connect", **addresses)
        assert checked.returncode == 0
        assert "notify: env:SOAK_HOOK by json on failure and end, report attached" in checked.stdout
        assert (len(hook.bodies), len(mailbox.taken)) == (1, 1), "looking and checking send nothing"
        hook.statuses = [404]
        wrong = {**addresses, "SOAK_MAIL": addresses["SOAK_MAIL"].replace(PASSWORD, f"not-{PASSWORD}")}
        done = soakwatch("notify", "plan.yaml", "--test", **wrong)
    assert done.returncode == 2
    assert "env:SOAK_HOOK (json): not sent: it answers with the status 404" in done.stdout
    assert "env:SOAK_MAIL (mailto): not sent: it refuses the login (SMTP 535)" in done.stdout
    assert PASSWORD not in done.stdout
    assert TOKEN not in done.stdout


@pytest.mark.usefixtures("sent_here")
def test_one_address_without_a_plan(tmp_path: Path, soakwatch: Command) -> None:
    """A reference and never the address itself; and a run whose address is none does not begin."""
    with posts() as hook:
        recipients = {"SOAK_HOOK": f"json://127.0.0.1:{hook.port}"}
        assert soakwatch("notify", "--test", "--to", "env:SOAK_HOOK", **recipients).returncode == 0
        assert len(hook.bodies) == 1
    plain = soakwatch("notify", "--test", "--to", f"json://soak:{PASSWORD}@127.0.0.1")
    assert plain.returncode == 2
    assert "--to: a secret must not be written in clear text" in plain.stdout
    assert PASSWORD not in plain.stdout
    (tmp_path / "plan.yaml").write_text(
        "duration: 1m\ntargets: {dut: {sources: [local]}}\nnotify: [env:SOAK_HOOK, env:SURELY_NOT_SET]\n"
    )
    run = soakwatch("run", "plan.yaml", SOAK_HOOK=f"hunter2:{PASSWORD}")
    assert run.returncode == 2
    address, missing = run.stdout.splitlines()
    assert "plan.yaml: notify, number 1: env:SOAK_HOOK holds no Apprise URL" in address
    assert "plan.yaml: notify, number 2: the environment variable SURELY_NOT_SET is not set" in missing
    assert PASSWORD not in run.stdout
    assert not (tmp_path / "runs").exists()

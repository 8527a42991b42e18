"""Notifications in a plan: their shape, their secrets, and what is reported of them before a run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import requests
from tests.collector.engine.notify.notify_kit import plan
from tests.collector.plan_validator import plan_validator

from soakwatch.core.errors import PlanError
from soakwatch.core.yaml import parse
from soakwatch.engine.notify import service
from soakwatch.engine.notify.message import Message
from soakwatch.engine.notify.setup import check_notifications

SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general"


def test_what_a_plan_says_of_notifications() -> None:
    """Failure and end with the report unless it says otherwise; one word is a list of one."""
    text = "notify: [env:A, {to: 'file:/b', on: start, attach: none}, {to: env:C, on: [end], attach: summary}]"
    usual, bare, last = plan(text).notify
    assert (usual.to, usual.on, usual.attach) == ("env:A", ["failure", "end"], "report")
    assert (bare.to, bare.on, bare.attach) == ("file:/b", ["start"], "none")
    assert (last.on, last.attach) == (["end"], "summary")
    assert plan("").notify == ()
    whole = parse(f"duration: 1h\ntargets: {{dut: {{sources: [local]}}}}\n{text}", "p").data
    plan_validator().validate(whole)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"[{{to: '{SLACK}'}}]", "write env:NAME or file:PATH"),
        (f"['{SLACK}']", "write env:NAME or file:PATH"),
        ("[{to: 'mailto://soak:TIiajkdnlazkcOXrIdevi7FQ@h'}]", "env:NAME or file:PATH"),
        ("[{to: env:A, on: [warn]}]", "start"),
        ("[{to: env:A, on: []}]", "on"),
        ("[{to: env:A, attach: pdf}]", "attach"),
        ("[{too: env:A}]", "unknown key 'too'"),
        (f"[{', '.join(f'env:A{n}' for n in range(9))}]", "8"),
    ],
)
def test_what_is_wrong_is_one_sentence_without_the_secret(text: str, sentence: str) -> None:
    """With its place."""
    with pytest.raises(PlanError) as refused:
        plan(f"notify: {text}")
    lines = "\n".join(refused.value.problems)
    assert sentence in lines
    assert "p.yaml:4" in lines
    assert "TIiajkdnlazkcOXrIdevi7FQ" not in lines


@pytest.mark.usefixtures("sent_here")
def test_well_formed_addresses_are_named_by_their_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slack, Teams and Telegram cannot be reached from a test: that their addresses are understood, and by which
    plugin, is what can be seen without them. A webhook of Slack takes no files; a bot does."""
    addresses = {
        "HOOK": SLACK,
        "NATIVE": "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        "BOT": "slack://xoxb-1234-1234-4ddbc191d40ee098cbaae6f3523ada2d/#soak",
        "TEAMS": "workflows://prod-1.westus.logic.azure.com:443/643e69f83c8944/aB3-sIg",
        "TELEGRAM": "tgram://123456789:abcdefg_hijklmnop/12315544/",
        "MAIL": "mailtos://soak:hunter2hunter2@smtp.example?from=soak@lab.example&to=a@lab.example,b@lab.example",
        "XML": "xmls://lab.example/hook",
    }
    for name, address in addresses.items():
        monkeypatch.setenv(f"SOAK_{name}", address)
    listed = ", ".join(f"env:SOAK_{name}" for name in addresses)
    lines = check_notifications(plan(f"notify: [{listed}, {{to: env:SOAK_XML, on: [start, failure]}}]"))
    assert lines == (
        "notify: env:SOAK_HOOK by slack on failure and end, with a summary: it takes no files",
        "notify: env:SOAK_NATIVE by slack on failure and end, with a summary: it takes no files",
        "notify: env:SOAK_BOT by slack on failure and end, report attached",
        "notify: env:SOAK_TEAMS by workflow on failure and end, with a summary: it takes no files",
        "notify: env:SOAK_TELEGRAM by tgram on failure and end, report attached",
        "notify: env:SOAK_MAIL by mailtos on failure and end, report attached",
        "notify: env:SOAK_XML by xmls on failure and end, report attached",
        "notify: env:SOAK_XML by xmls on start and failure",
    )


@pytest.mark.usefixtures("sent_here")
def test_addresses_that_cannot_work_are_refused_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each names its reference and never a part of the secret."""
    monkeypatch.setenv("NO_URL", "hunter2hunter2")
    monkeypatch.setenv("NOBODY", "hunter2hunter2://somebody:else@where")
    monkeypatch.setenv("HALF", "slack://hunter2hunter2")
    monkeypatch.delenv("NOT_THERE", raising=False)
    with pytest.raises(PlanError) as refused:
        check_notifications(plan("notify: [env:NO_URL, env:NOBODY, env:HALF, env:NOT_THERE]"))
    no_url, nobody, half, missing = refused.value.problems
    assert "p.yaml: notify, number 1: env:NO_URL holds no Apprise URL" in no_url
    assert "number 2: env:NOBODY holds an address of no service that Apprise knows" in nobody
    assert "number 3: env:HALF holds no complete address of the service slack" in half
    assert "the environment variable NOT_THERE is not set" in missing
    assert "hunter2" not in "".join(refused.value.problems)
    assert "else" not in "".join(refused.value.problems)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Apprise imports what Python has given up
@pytest.mark.parametrize(
    ("address", "host", "summary", "name"),
    [
        (SLACK, "hooks.slack.com", "## told", "&lt;x&gt;"),
        ("tgram://123456789:abcdefg_hijklmnop/12315544/", "api.telegram.org", "## told", "&lt;x&gt;"),
        (
            "workflows://prod-1.westus.logic.azure.com:443/643e69f83c8944/aB3-sIg",
            "prod-1.westus.logic.azure.com",
            "## told",
            "<x\\\\>",
        ),
    ],
    ids=["slack", "telegram", "teams"],
)
def test_what_slack_telegram_and_teams_would_be_sent(
    address: str, host: str, summary: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the wire and not further: one request, with title, text and summary, and names of processes as text."""
    asked: list[tuple[str, str]] = []

    def request(_session: object, method: str, url: str, **arguments: object) -> requests.Response:
        asked.append((f"{method.upper()} {url}", str(arguments["data"])))
        answer = requests.Response()
        answer.status_code = 200
        answer._content = b"ok"
        return answer

    monkeypatch.setattr(requests.Session, "request", request)
    monkeypatch.setenv("SOAK_TO", address)
    message = Message("end", "FAIL night: dut failed hang", "FAIL: process=<x> hangs", "failure", "## told\n" * 900)
    assert not service.ask("env:SOAK_TO", message).trouble
    ((line, body),) = asked
    assert line.startswith((f"POST https://{host}/", f"POST https://{host}:443/"))
    text = json.dumps(json.loads(body), ensure_ascii=False)
    for part in ("FAIL night: dut failed hang", name, summary, "the rest is in the report" if host[0] != "h" else ""):
        assert part in text
    long = Message("more", "night: 40 findings fail", "\n".join(f"- <{n}> {'& ' * 100}" for n in range(40)), "failure")
    assert not service.ask("env:SOAK_TO", long).trouble
    payload = json.dumps(json.loads(asked[1][1]), ensure_ascii=False)
    assert ("the rest is in the report" in payload) == (host[0] != "h"), "it is cut at the end of a line"


def test_apprise_is_not_in_a_run() -> None:
    """It weighs more than the rest of the collector: only the process that sends loads it."""
    code = (
        "import sys, soakwatch.cli.foreground, soakwatch.engine.notify.setup, soakwatch.cli.commands.notify\n"
        "assert not {'apprise', 'requests'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240)

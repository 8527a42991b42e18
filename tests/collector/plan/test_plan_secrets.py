"""A secret that someone wrote into a plan all the same: refused, and repeated by no sentence."""

from __future__ import annotations

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.plan import plan_from_text

WORD = "hunter2-of-somebody"


@pytest.mark.parametrize(
    "source",
    [
        "traps: {communities: WORD}",
        "traps: {communities: [WORD]}",
        "traps: {users: [{user: u, auth: WORD}]}",
        "traps: {users: [{user: u, priv: [WORD]}]}",
        "http: {url: https://h/, headers: WORD}",
        "http: {url: https://h/, headers: {X-Token: WORD}}",
        "http: {url: https://h/, token: {WORD: 1}}",
        "http: {url: 'https://u:WORD@h/'}",
        "http: {url: 'https://u:WORD@h:99999/'}",
        "http: {url: 'https://u:W/WORD@h/'}",
        "prometheus: {url: 'ftp://u:WORD@h/'}",
        "agent: {url: 'https://u:WORD@h', token: env:T}",
        "agent: {host: 'u:WORD@h'}",
        "snmp: {host: 'u:WORD@h'}",
        "snmp: {host: h, community: WORD}",
        "snmp: {host: h, version: 3, user: u, auth: WORD}",
        "ssh: {host: 'u:WORD@h'}",
        "ssh: {host: h, jump: 'u:WORD@gate'}",
        "ssh: {host: h, jump: [{host: gate, password: WORD}]}",
        "ssh: {host: h, enable: WORD}",
        "gnmi: {host: 'u:WORD@h'}",
        "icmp: {host: 'u:WORD@h'}",
        "tcp: {host: 'u:WORD@h', port: 22}",
    ],
)
def test_no_sentence_repeats_a_secret(source: str) -> None:
    """Whatever key it was written for, and in whatever form."""
    plan = f"duration: 1h\ntargets: {{dut: {{sources: [{source.replace('WORD', WORD)}]}}}}"
    with pytest.raises(PlanError) as caught:
        plan_from_text(plan, "plan.yaml")
    printed = "\n".join((str(caught.value), *caught.value.problems))
    assert WORD not in printed
    assert WORD[:7] not in printed


def test_a_list_of_secrets_is_asked_for_by_its_form() -> None:
    """One community without brackets is the likeliest mistake."""
    with pytest.raises(PlanError, match=r"communities: expected a list of secrets, each as env:NAME or file:PATH"):
        plan_from_text("duration: 1h\ntargets: {dut: {sources: [traps: {communities: env:C}]}}", "plan.yaml")


def test_what_a_plan_says_of_itself_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token in the address of a webhook is shown by no repr; of all other secrets there are only references."""
    monkeypatch.setenv("TOKEN_OF_TEST", WORD)
    plan = plan_from_text(
        "duration: 1h\n"
        "targets: {dut: {sources: [snmp: {host: h, version: 2c, community: env:TOKEN_OF_TEST}]}}\n"
        f"hooks: [{{webhook: {{url: 'https://h/{WORD}', headers: {{A: env:TOKEN_OF_TEST}}}}}}]\n"
        "web: {token: env:TOKEN_OF_TEST}\n"
        "notify: [env:TOKEN_OF_TEST]\n",
        "plan.yaml",
    )
    assert WORD not in repr(plan)

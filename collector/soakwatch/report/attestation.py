"""An in-toto Statement with the test-result predicate: the verdict for policies that let a release through or not."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping

from soakwatch.core.errors import RecordError
from soakwatch.judge.verdict import Verdict
from soakwatch.record.seal import Checked
from soakwatch.record.source import ReportSource
from soakwatch.report.check_list import CheckState, check_list
from soakwatch.report.json import json_text
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.tree import Tree

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
_DIGEST = re.compile(r"(sha256):([0-9a-f]{64})")


def render_attestation(source: ReportSource, verdict: Verdict) -> str:
    """A Statement v1 about the sealed record of a run, with the predicate test-result v0.1.

    The subject is the seal, by the digest that ``soakwatch verify`` shows, and then each label whose value is a digest
    (``image=sha256:…``), which says what was tested. The configuration is the plan and the rules.
    ``result`` is PASSED, WARNED for a pass with warnings, and FAILED for the rest: an inconclusive run is FAILED, since
    the predicate has no other word that every policy refuses. Which of the two it was is in ``soakwatch_verdict``.
    ``passedTests`` holds nothing that was skipped, so that a policy that requires a check by its name refuses a run
    that did not make it.

    Raises RecordError for a record that is not sealed, was changed since, or belongs to a run that goes on.
    """
    digest = _sealed_digest(source, verdict)
    checks = check_list(verdict).checks
    named = {state: [check.full_name for check in checks if check.state is state] for state in CheckState}
    failed = [check.full_name for check in checks if check.state.holds_back]
    return json_text(
        {
            "_type": STATEMENT,
            "subject": [_subject(f"{verdict.run}/seal.txt", "sha256", digest), *_tested(verdict.labels)],
            "predicateType": PREDICATE,
            "predicate": {
                "result": _result(verdict, warned=bool(named[CheckState.WARNED])),
                "configuration": list[Tree](_configuration(source, verdict)),
                "passedTests": list[Tree](named[CheckState.PASSED]),
                "warnedTests": list[Tree](named[CheckState.WARNED]),
                "failedTests": list[Tree](failed),
                "soakwatch_verdict": verdict.outcome.value,
                "soakwatch_inconclusiveTests": list[Tree](named[CheckState.INCONCLUSIVE]),
                "soakwatch_labels": dict[str, Tree](verdict.labels),
            },
        }
    )


def rules_text(findings: Iterable[Finding]) -> str:
    """The rules that judged, one a line in the order of their bytes: name, version, definition with its parameters."""
    lines = {" ".join(f"{f.rule} {f.version} {f.definition}".split()) for f in findings}
    return "".join(f"{line}\n" for line in sorted(lines, key=str.encode))


def _subject(name: str, algorithm: str, digest: str) -> dict[str, Tree]:
    return {"name": name, "digest": {algorithm: digest}}


def _tested(labels: Mapping[str, str]) -> Iterator[dict[str, Tree]]:
    for name, text in labels.items():
        if found := _DIGEST.fullmatch(text):
            yield _subject(name, found[1], found[2])


def _result(verdict: Verdict, *, warned: bool) -> str:
    if verdict.outcome is not Outcome.PASS:
        return "FAILED"
    return "WARNED" if warned else "PASSED"


def _configuration(source: ReportSource, verdict: Verdict) -> Iterable[dict[str, Tree]]:
    if plan := source.meta("plan"):
        yield _described("plan.yaml", plan, "application/yaml")
    yield _described("rules.txt", rules_text(verdict.findings), "text/plain")


def _described(name: str, text: str, media: str) -> dict[str, Tree]:
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return {"name": name, "digest": {"sha256": digest}, "mediaType": media}


def _sealed_digest(source: ReportSource, verdict: Verdict) -> str:
    folder = source.path.parent
    checked: Checked | None = verdict.checked
    if verdict.preliminary:
        raise RecordError(f"{folder} goes on: a run is attested once it has ended and is sealed")
    if checked is not None and checked.changed:
        raise RecordError(f"{folder} was {checked.words}: what was changed is not attested")
    if checked is None or checked.seal is None:
        raise RecordError(f"{folder} is not sealed, so there is no digest to attest: soakwatch seal {folder}")
    return checked.seal.digest

"""deploy/ci: valid by the schemas of GitHub and GitLab, read by Groovy, and its shell run with real runs.

One passes, one fails, one is inconclusive, and only the pass is green.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml
from tests.commands import MAX_WAIT_S, SOAKWATCH
from tests.needs import needs

ROOT = Path(__file__).parents[2]
KIT = ROOT / "deploy/ci"
PLAN = """\
name: quick
duration: 2s
targets: {{dut: {{sources: [{{local: {{interval: 200ms, probes: [{probes}], required: false}}}}]}}}}
rules: {{coverage: {{required: false}}, gap: {{required: false}}, hang: {{required: false}}{rules}}}
"""
"""On a busy machine polls are missed: that does not count here."""
PLANS = {
    "pass": PLAN.format(probes="boot", rules=""),
    "fail": PLAN.format(probes="boot, memory", rules=", level: {memory: 0.1%}"),
    "inconclusive": PLAN.format(probes="cpu", rules=""),
}
CAMPAIGN = (
    "name: nightly\nplan: pass.yaml\nmatrix: {every: {set: targets.dut.sources.local.interval, values: [250ms]}}\n"
)
CODES = {"pass": 0, "fail": 1, "inconclusive": 3}
REPORTS = {
    "report.html",
    "report.md",
    "verdict.json",
    "junit.xml",
    "ctrf.json",
    "test-result.intoto.json",
    "badge.svg",
    "annotations.txt",
}
STUB = "#!/bin/sh\nprintf '%s\\n' \"$@\" >words.txt\nexit {code}\n"
"""A Soakwatch that ends at once with an exit code, for those that no plan brings about."""


def workspace(folder: Path, stub: int | None = None) -> Path:
    """A checkout with the plans, and a Soakwatch on the path: the real one, or one that ends at once."""
    folder.mkdir(parents=True)
    for name, text in PLANS.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    (folder / "campaign.yaml").write_text(CAMPAIGN, encoding="utf-8")
    program = folder / ".bin/soakwatch"
    program.parent.mkdir()
    if stub is None:
        program.symlink_to(SOAKWATCH)
    else:
        program.write_text(STUB.format(code=stub), encoding="utf-8")
        program.chmod(0o755)
    return folder


def bash(folder: Path, words: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """A shell in a checkout, whose Soakwatch is on the path."""
    around = {"PATH": f"{folder / '.bin'}:{os.environ['PATH']}", "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)}
    return subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **around, **variables},
        text=True,
        capture_output=True,
        timeout=MAX_WAIT_S,
        check=False,
    )


@dataclass
class Action:
    """The composite action, run step by step as GitHub does."""

    folder: Path
    inputs: Mapping[str, str]
    outputs: dict[str, str] = field(default_factory=dict)
    log: str = ""
    green: bool = True
    kept: bool = False

    def run(self) -> Action:
        """All steps whose condition holds: after one that failed, those that say always()."""
        document = yaml.safe_load((KIT / "github/action.yml").read_text(encoding="utf-8"))
        given = {name: spec.get("default", "") for name, spec in document["inputs"].items()} | dict(self.inputs)
        assert set(given) == set(document["inputs"])
        for step in document["runs"]["steps"]:
            condition = step.get("if", "success()")
            if not (self.green or "always()" in condition):
                continue
            if not all(self._holds(part.strip(), given) for part in condition.split("&&")):
                continue
            if "uses" in step:
                self.kept = True
                continue
            assert "${{" not in step["run"], "inputs come by the environment"
            variables = {name: self._filled(text, given) for name, text in step["env"].items()}
            done = self._shell(step["run"], variables)
            self.log += done.stdout + done.stderr
            self.green = self.green and done.returncode == 0
        return self

    @property
    def summary(self) -> str:
        """What the page of the job shows."""
        return (self.folder / "summary.md").read_text(encoding="utf-8")

    def _holds(self, part: str, given: Mapping[str, str]) -> bool:
        if part in {"always()", "success()"}:
            return True
        expression, _, value = part.partition(" != ")
        return self._filled(f"${{{{ {expression} }}}}", given) != value.strip("'")

    def _filled(self, text: str, given: Mapping[str, str]) -> str:
        def value(match: re.Match[str]) -> str:
            kind, _, name = match[1].partition(".")
            return given[name] if kind == "inputs" else self.outputs.get(name.removeprefix("soak.outputs."), "")

        return re.sub(r"\$\{\{ (\S+) \}\}", value, text)

    def _shell(self, script: str, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        files = {"GITHUB_OUTPUT": self.folder / "outputs", "GITHUB_STEP_SUMMARY": self.folder / "summary.md"}
        (self.folder / "step.sh").write_text(script, encoding="utf-8")
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "step.sh"]
        around = {name: str(file) for name, file in files.items()} | {"GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "1"}
        for file in files.values():
            file.touch()
        done = bash(self.folder, words, **around, **variables)
        lines = files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines()
        self.outputs = dict(line.split("=", 1) for line in lines)
        return done


@pytest.fixture(scope="module")
def actions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Action]:
    """The action with a plan for each verdict, side by side; in each workspace lies the report of an earlier job."""
    folder = tmp_path_factory.mktemp("github")

    def act(name: str) -> Action:
        place = workspace(folder / name)
        (place / "soakwatch").mkdir()
        (place / "soakwatch/figures.csv").write_text("of an earlier job", encoding="utf-8")
        return Action(place, {"plan": f"{name}.yaml", "options": "--label\nrelease=7.2 final\n"}).run()

    with ThreadPoolExecutor() as pool:
        return dict(zip(PLANS, pool.map(act, PLANS), strict=True))


@pytest.mark.parametrize("name", PLANS)
def test_the_action_ends_as_the_verdict_says(actions: dict[str, Action], name: str) -> None:
    """Red unless it passed; the summary is the report, what failed is annotated, and all is kept. Words with spaces
    stay one word."""
    action = actions[name]
    assert action.outputs["verdict"] == name, action.log
    assert action.outputs["exit-code"] == str(CODES[name])
    assert action.green == (name == "pass")
    assert action.kept
    assert action.summary.startswith(f"## {'✓✗?'['pfi'.index(name[0])]} Soakwatch: {name.upper()}")
    assert ("::error title=" in action.log) == (name != "pass")
    assert {path.name for path in (action.folder / "soakwatch").iterdir()} == {*REPORTS, "runs"}
    run = action.folder / action.outputs["run"]
    assert (run / "record.sqlite").is_file()
    verdict = json.loads((run / "verdict.json").read_text(encoding="utf-8"))
    assert (verdict["verdict"], verdict["labels"]) == (name, {"release": "7.2 final"})


@pytest.mark.parametrize(
    ("code", "inconclusive", "green"),
    [
        (0, "fail", True),
        (1, "warn", False),
        (3, "fail", False),
        (3, "warn", True),
        (2, "warn", False),
        (4, "warn", False),
    ],
)
def test_the_switch_of_the_action_lets_through_what_is_inconclusive_and_nothing_else(
    tmp_path: Path, code: int, inconclusive: str, green: bool
) -> None:
    """And then it says so; an error is red, with a summary that there is no verdict."""
    action = Action(workspace(tmp_path / "w", code), {"plan": "p.yaml", "inconclusive": inconclusive}).run()
    assert action.green is green
    assert ("::warning title=Soakwatch: inconclusive::" in action.log) == (code == 3 and green)
    assert "there is no verdict" in action.summary  # this Soakwatch wrote no report


@pytest.mark.parametrize(
    "inputs", [{}, {"plan": "p", "campaign": "c"}, {"plan": "p", "inconclusive": "Warn"}], ids=["none", "both", "word"]
)
def test_wrong_inputs_of_the_action_are_red_before_anything_runs(tmp_path: Path, inputs: dict[str, str]) -> None:
    """With a sentence on the page of the job."""
    action = Action(workspace(tmp_path / "w", 0), inputs).run()
    assert not action.green
    assert "::error title=Soakwatch::" in action.log
    assert not (tmp_path / "w/words.txt").exists()


def gitlab(folder: Path, **variables: str) -> tuple[str, subprocess.CompletedProcess[str]]:
    """The job of the template as GitLab's runner does it, and its colour."""
    job = yaml.safe_load((KIT / "gitlab/soakwatch.gitlab-ci.yml").read_text(encoding="utf-8"))[".soakwatch"]
    given = {name: text.replace("$CI_COMMIT_SHORT_SHA", "c0ffee") for name, text in job["variables"].items()}
    script = "set -eo pipefail\n" + "\n".join(job["script"])
    done = bash(folder, ["bash", "-c", script], CI_JOB_ID="7", **{**given, **variables})
    allowed = job["allow_failure"]["exit_codes"]
    return "green" if done.returncode == 0 else "orange" if done.returncode in allowed else "red", done


@pytest.mark.slow
@pytest.mark.parametrize(("name", "colour"), [("pass", "green"), ("fail", "red"), ("inconclusive", "orange")])
def test_the_job_of_gitlab_ends_as_the_verdict_says(tmp_path: Path, name: str, colour: str) -> None:
    """Green, red, orange; its artifacts and JUnit are where the job says."""
    folder = workspace(tmp_path / "w")
    found, done = gitlab(folder, SOAK_PLAN=f"{name}.yaml", SOAK_DURATION="1500ms", SOAK_LABELS="commit=1 note=x*")
    assert found == colour, done.stderr
    job = yaml.safe_load((KIT / "gitlab/soakwatch.gitlab-ci.yml").read_text(encoding="utf-8"))[".soakwatch"]
    suites = ET.parse(folder / job["artifacts"]["reports"]["junit"]).getroot()
    assert ((suites.get("failures"), suites.get("errors")) == ("0", "0")) == (name == "pass")
    (kept,) = job["artifacts"]["paths"]
    (record,) = (folder / kept).glob("runs/*/record.sqlite")
    verdict = json.loads(record.with_name("verdict.json").read_text(encoding="utf-8"))
    assert verdict["labels"] == {"commit": "1", "note": "x*"}


@pytest.mark.parametrize(
    ("code", "inconclusive", "colour"),
    [(0, "warn", "green"), (1, "warn", "red"), (3, "warn", "orange"), (3, "fail", "red"), (2, "warn", "red")],
)
def test_the_switch_of_gitlab_makes_what_is_inconclusive_red(
    tmp_path: Path, code: int, inconclusive: str, colour: str
) -> None:
    """The report of an earlier job is not shown as that of one that wrote none."""
    folder = workspace(tmp_path / "w", code)
    (folder / "soakwatch").mkdir()
    (folder / "soakwatch/junit.xml").write_text("old", encoding="utf-8")
    assert gitlab(folder, SOAK_PLAN="p.yaml", SOAK_INCONCLUSIVE=inconclusive)[0] == colour
    assert not (folder / "soakwatch/junit.xml").exists()
    assert gitlab(folder, SOAK_INCONCLUSIVE="never", SOAK_PLAN="p.yaml")[0] == "red"
    assert gitlab(folder)[0] == "red"


def jenkins_shell() -> str:
    """The one script of the Jenkinsfile."""
    (script,) = re.findall(r"script: '''(.*?)'''", (KIT / "jenkins/Jenkinsfile").read_text(encoding="utf-8"), re.DOTALL)
    return str(script)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_the_shell_of_the_jenkinsfile_ends_with_the_exit_code_of_the_run(tmp_path: Path, name: str) -> None:
    """Which decides what the build is."""
    folder = workspace(tmp_path / "w")
    script = folder / "script.sh"
    script.write_text(jenkins_shell(), encoding="utf-8")
    script.chmod(0o755)
    done = bash(folder, [str(script)], PLAN=f"{name}.yaml", DURATION="", CAMPAIGN="", BUILD_NUMBER="41")
    assert done.returncode == CODES[name], done.stderr
    assert {path.name for path in (folder / "soakwatch").iterdir()} == {*REPORTS, "runs"}


@pytest.mark.slow
@pytest.mark.parametrize("ci", ["github", "gitlab", "jenkins"])
def test_a_nightly_campaign_passes_in_each(tmp_path: Path, ci: str) -> None:
    """The table of the campaign is the report, and JUnit has its run."""
    folder = workspace(tmp_path / "w")
    if ci == "github":
        action = Action(folder, {"campaign": "campaign.yaml"}).run()
        assert action.green, action.log
        assert "nightly" in action.summary
    elif ci == "gitlab":
        colour, done = gitlab(folder, SOAK_CAMPAIGN="campaign.yaml")
        assert colour == "green", done.stdout + (folder / "soakwatch/report.md").read_text()
    else:
        (folder / "script.sh").write_text(jenkins_shell(), encoding="utf-8")
        done = bash(folder, ["bash", "script.sh"], CAMPAIGN="campaign.yaml", BUILD_NUMBER="41", DURATION="", PLAN="x")
        assert done.returncode == 0, done.stderr
    (case,) = ET.parse(folder / "soakwatch/junit.xml").iter("testcase")
    assert (case.get("classname"), case.get("name"), len(case)) == ("every=250ms", "run 1", 0)


@pytest.mark.parametrize(
    ("schema", "words", "files"),
    [
        ("vendor.github-actions", (), ["github/action.yml"]),
        ("vendor.github-workflows", (), ["github/soak.yml", "github/nightly-campaign.yml"]),
        ("vendor.gitlab-ci", ("--data-transform", "gitlab-ci"), ["gitlab/soakwatch.gitlab-ci.yml"]),
    ],
    ids=["action", "workflows", "gitlab"],
)
def test_the_kit_is_valid_by_the_schemas_of_its_products(schema: str, words: tuple[str, ...], files: list[str]) -> None:
    """Those that check-jsonschema brings with it; nothing is fetched."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *words]
    done = subprocess.run([*command, *(str(KIT / file) for file in files)], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_file_of_the_kit_is_checked_and_used_as_it_is() -> None:
    """Workflows and documentation give the action and the template what they take."""
    files = {str(file.relative_to(KIT)) for file in KIT.rglob("*") if file.is_file()}
    assert files == {
        "github/action.yml",
        "github/soak.yml",
        "github/nightly-campaign.yml",
        "gitlab/soakwatch.gitlab-ci.yml",
        "jenkins/Jenkinsfile",
    }
    action = yaml.safe_load((KIT / "github/action.yml").read_text(encoding="utf-8"))
    for name in ("soak", "nightly-campaign"):
        text = (KIT / f"github/{name}.yml").read_text(encoding="utf-8")
        (job,) = yaml.safe_load(text)["jobs"].values()
        (step,) = [step for step in job["steps"] if step.get("id") == "soakwatch"]
        assert set(step["with"]) <= set(action["inputs"])
        assert set(re.findall(r"soakwatch\.outputs\.([\w-]+)", text)) <= set(action["outputs"])
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    shown = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    (step,), job = shown
    assert set(step["with"]) <= set(action["inputs"])
    template = yaml.safe_load((KIT / "gitlab/soakwatch.gitlab-ci.yml").read_text(encoding="utf-8"))
    assert job["include"]["local"] == "ci/soakwatch.gitlab-ci.yml"
    assert job["overnight"]["extends"] in template
    assert set(job["overnight"]["variables"]) <= set(template[".soakwatch"]["variables"])


JENKINS = """\
class Build {
    int code; String switched; String result = 'SUCCESS'; List<String> said = []
    def getParams() { [INCONCLUSIVE: switched] }
    def sh(Map given) { assert given.returnStatus && !given.script.contains('${params'); code }
    def unstable(String why) { if (result == 'SUCCESS') { result = 'UNSTABLE' } }
    def error(String why) { result = 'FAILURE'; throw new IllegalStateException(why) }
    def stages(Closure body) { try { within(body) } catch (IllegalStateException failed) { } }
    def junit(Map given) { assert given.skipMarkingBuildUnstable; said << 'junit ' + given.testResults }
    def archiveArtifacts(Map given) { said << 'archive ' + given.artifacts }
    def within(Closure body) { body.delegate = this; body.resolveStrategy = Closure.DELEGATE_FIRST; body() }
    def methodMissing(String name, given) { given.findAll { it instanceof Closure }.each { within(it) } }
}
for (String line in args[1].split(' ')) {
    def (code, switched) = line.split(':')
    def build = new Build(code: code as int, switched: switched)
    def file = new GroovyShell(new Binding()).parse(new File(args[0]))
    file.metaClass.pipeline = { Closure body -> build.within(body) }
    file.run()
    println "$line $build.result ${build.said.join(', ')}"
}
"""
"""Enough of a pipeline to run a Jenkinsfile: what it makes of an exit code, and what it does at the end."""


@pytest.mark.slow
def test_the_jenkinsfile_makes_of_each_exit_code_what_it_says(tmp_path: Path) -> None:
    """Read and run by Groovy: green for 0 alone, unstable for 3 if the switch says so, else red; reports always."""
    needs("groovy")
    (tmp_path / "build.groovy").write_text(JENKINS, encoding="utf-8")
    cases = {
        "0:unstable": "SUCCESS",
        "1:unstable": "FAILURE",
        "3:unstable": "UNSTABLE",
        "3:failure": "FAILURE",
        "2:unstable": "FAILURE",
        "4:unstable": "FAILURE",
        "130:unstable": "FAILURE",
    }
    java = Path(os.path.realpath("/usr/bin/java")).parents[1]
    done = subprocess.run(
        ["groovy", "build.groovy", str(KIT / "jenkins/Jenkinsfile"), " ".join(cases)],
        cwd=tmp_path,
        env={**os.environ, "JAVA_HOME": str(java)},
        text=True,
        capture_output=True,
        timeout=MAX_WAIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    always = "junit soakwatch/junit.xml, archive soakwatch/**"
    assert [line for line in done.stdout.splitlines() if ":" in line] == [
        f"{case} {result} {always}" for case, result in cases.items()
    ]

"""Documentation that can be checked is checked: generated blocks, the example plan, commands, links."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from soakwatch.cli.main import COMMANDS
from soakwatch.judge.adjudicate.order import RULINGS
from soakwatch.plan import load_plan, plan_from_text
from soakwatch.transfer.sinks.registry import destinations

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = {page.stem: page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md"))}
SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
FORMS = {
    file.stem: file.read_text(encoding="utf-8")
    for file in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    if file.stem != "config"
}
EVERYTHING = "\n".join([README, *DOCS.values()])


def _fenced(kind: str, text: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)


def test_generated_blocks_are_up_to_date() -> None:
    """What a command prints stands in the README and in docs/ as it prints it (python tests/readme.py --update)."""
    spec = importlib.util.spec_from_file_location("readme", ROOT / "tests" / "readme.py")
    assert spec is not None
    assert spec.loader is not None
    readme = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(readme)
    for page in (README, *DOCS.values()):
        assert readme.renewed(page) == page, "run: .venv/bin/python tests/readme.py --update"
    assert sum(text.count("<!-- output: ") for text in DOCS.values()) == len(readme.BLOCKS)


def test_the_readme_is_a_door() -> None:
    """The manual is in docs/, the README leads to its index, and that to every page, each in one place."""
    assert len(README.splitlines()) <= 170
    assert "](docs/README.md)" in README
    listed = re.findall(r"^\| .*\]\(([\w-]+)\.md\) \|", DOCS["README"], re.MULTILINE)
    assert sorted(listed) == sorted(DOCS.keys() - {"README"})


def test_what_others_are_told_is_linked() -> None:
    """Whoever reads the README or how to contribute finds goals, security, changelog and how a change is told."""
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for page in ("docs/goals.md", "SECURITY.md", "CHANGELOG.md"):
        assert f"]({page})" in README
        assert f"]({page})" in contributing
    assert "](changes/README.md)" in contributing
    assert ".github/workflows/checks.yml" in contributing


def test_every_file_of_changes_is_in_the_changelog_that_they_make() -> None:
    """Each is of a kind that towncrier knows, so that none is left behind at a release."""
    files = [file for file in (ROOT / "changes").iterdir() if file.name != "README.md"]
    build = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "next"]
    made = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    words = " ".join(made.split())  # a file may have several lines, which towncrier indents
    assert [file.name for file in files if " ".join(file.read_text(encoding="utf-8").split()) not in words] == []
    assert "## next" in made


def _defined(module: Path) -> set[str]:
    """The functions and methods of a file, methods with their class."""
    names: set[str] = set()
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (child for child in node.body if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))
            names |= {f"{node.name}.{method.name}" for method in methods}
    return names


def test_the_walk_of_a_sample_is_short_and_exists() -> None:
    """At most fifteen functions from the timer to the report, each where docs/architecture.md says it is."""
    walk = re.findall(r"^\| (\d+) \| `([\w/.]+\.py)` \| `([\w.]+)` \|", DOCS["architecture"], re.MULTILINE)
    assert [int(number) for number, _, _ in walk] == list(range(1, len(walk) + 1))
    assert 10 <= len(walk) <= 15
    assert [(file, name) for _, file, name in walk if name not in _defined(ROOT / file)] == []


def test_the_rulings_stand_in_their_order() -> None:
    """docs/rules.md lists what is decided about a finding after its rule, as RULINGS has it."""
    rows = []
    for step in RULINGS:
        what = (inspect.getdoc(step.decide) or "").partition("\n\n")[0].replace("\n", " ").replace("``", "`")
        rows.append(f"| `{step.decide.__name__}` | {step.when} | {what} |")
    listed = re.findall(r"^\| `\w+` \| (?:always|live|end) \|.*", DOCS["rules"], re.MULTILINE)
    assert listed == rows


def test_the_plans_of_the_documentation_can_be_run() -> None:
    """The plan in the README parses, and so does every other in docs/ and every example plan."""
    (plan,) = _fenced("yaml", README)
    devices, load, events, sinks, notify = (
        _fenced("yaml", DOCS[page])[0] for page in ("devices", "loads", "events", "influxdb-grafana", "notifications")
    )
    assert plan_from_text(plan, "README.md").duration_s == 12 * 3600
    (target,) = plan_from_text(f"duration: 1h\n{devices}", "README.md").targets
    assert [source.poller for source in target.sources] == ["snmp", "ssh", "icmp", "traps", "syslog"]
    (_, driven) = plan_from_text(load, "README.md").targets
    assert [(source.poller, getattr(source.config, "drive", None)) for source in driven.sources] == [("trex", True)]
    scripted = plan_from_text(load + events, "README.md")
    assert ([event.kind for event in scripted.events], len(scripted.hooks)) == (["failover", "flap"], 2)
    informing = plan_from_text(load + sinks + notify, "README.md")
    assert ([to.where for to in destinations(informing.sinks).values()], len(informing.notify)) == (
        ["http://127.0.0.1:8086 lab/soak"],
        2,
    )
    for example in ROOT.glob("deploy/examples/*/plan.yaml"):
        load_plan(example)


@pytest.mark.parametrize("name", FORMS)
def test_issue_forms_are_forms(name: str) -> None:
    """What GitHub asks of a form: keys, kinds of fields, a label each, identifiers that are unique."""
    form = yaml.safe_load(FORMS[name])
    assert form.keys() == {"name", "description", "labels", "body"}
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert all(field.keys() <= {"type", "id", "attributes", "validations"} for field in fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)
    for field in fields:
        options = field["attributes"].get("options", [])
        assert (field["type"] == "dropdown") == bool(options)
        assert len(set(map(str, options))) == len(options)


def _commands() -> list[list[str]]:
    everything = "\n".join([EVERYTHING, SECURITY, *FORMS.values()])
    shown = re.findall(r"^soakwatch ([^#\n&|]+)", "\n".join(_fenced("sh", everything)), re.MULTILINE)
    inline = re.findall(r"`soakwatch ([a-z][^`]*)`", everything)
    return [line.split() for line in [*shown, *inline]]


@pytest.mark.parametrize("words", _commands(), ids=" ".join)
def test_commands_of_the_documentation_exist(words: list[str]) -> None:
    """Each command that the README or docs/ shows exists, with the options that it shows."""
    assert words[0] in COMMANDS.names()
    command = COMMANDS.module(words[0]).command
    rest = words[1:]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        command = command.get_command(click.Context(command), rest[0])
        assert command is not None, f"{' '.join(words)}: there is no {rest[0]!r}"
        rest = rest[1:]
    assert isinstance(command, click.Command)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("-")} - {"-"} <= known


def _files(*patterns: str) -> list[str]:
    """The files of the project that match."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    return subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def _anchors(page: Path) -> set[str]:
    """The places of a page that a link can lead to: its headings, in the form that GitHub gives them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    """Relative links of every Markdown file point to files that are there, and to headings that they have."""
    for name in _files("*.md"):
        page = ROOT / name
        for link, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", page.read_text(encoding="utf-8")):
            if "://" in link or "mailto:" in link:
                continue
            to = page.parent / link if link else page
            assert to.exists(), f"{name}: {link}"
            assert not anchor or to.suffix != ".md" or anchor in _anchors(to), f"{name}: {link}#{anchor}"


def test_files_that_developers_are_told_of_exist() -> None:
    """A file in backticks stands where the page says, below whatever folder the page is about."""
    there = [f"/{name}" for name in _files()]
    pages = [f"{folder}/README.md" for folder in ("agent", "rules", "collector", "dashboards")]
    for name in ("CONTRIBUTING.md", "docs/architecture.md", *pages):
        for file in re.findall(
            r"`([a-z][a-z_]*(?:/[a-z_]+)+\.(?:py|yaml|js|jinja))`", (ROOT / name).read_text("utf-8")
        ):
            assert any(path.endswith(f"/{file}") for path in there), f"{name}: there is no {file}"


def test_every_exit_code_and_word_is_explained() -> None:
    """The README explains the exit codes, docs/words.md the words."""
    for code in range(5):
        assert f"| {code} |" in README
    for word in ("target", "sample", "series", "load", "phase", "event", "record", "finding", "verdict", "coverage"):
        assert re.search(rf"^\| [^|]*\b{word}\b", DOCS["words"], re.MULTILINE), word

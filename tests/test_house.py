"""The house rules: what the wheel holds, which way imports go, what every file on a shelf owes its readers."""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from configparser import ConfigParser
from pathlib import Path
from typing import Any, cast

import pytest
from tests.commands import Command

from soakwatch.cli.main import COMMANDS
from soakwatch.core.registry import INSTALLED, camel_case, plugins, rule_class
from soakwatch.judge.adjudicate.order import RULINGS
from soakwatch.report.section import all_sections
from soakwatch.sources.profiles import load_profiles
from soakwatch.sources.source_modules import poller_module
from soakwatch_agent.host import probe_names, source
from soakwatch_model.case import Case
from soakwatch_model.finding import Outcome
from soakwatch_model.metric import BY_NAME
from soakwatch_model.roles import ROLES
from soakwatch_rules.traits import Traits

ROOT = Path(__file__).parents[1]
CODE = {name: ROOT / name for name in ("agent", "rules", "collector")}
PACKAGES = {"soakwatch_agent", "soakwatch_rules", "soakwatch", "soakwatch_model"}
PROTOCOLS = {
    "gufo",
    "pysnmp",
    "asyncssh",
    "httpx",
    "re2",
    "influxdb_client",
    "prometheus_client",
    "grpc",
    "pygnmi",
    "cryptography",
    "zmq",
    "starlette",
    "uvicorn",
}
"""Libraries of protocols, and of what a plan may have: tens of megabytes together, of which most runs need one."""
SHELVES = (
    "agent/soakwatch_agent/probes",
    "rules/soakwatch_rules/detectors",
    "rules/soakwatch_rules/stats",
    "collector/soakwatch/sources/pollers",
    "collector/soakwatch/sources/loads",
    "collector/soakwatch/cli/commands",
    "collector/soakwatch/report/sections",
)


def files_of(shelf: str) -> list[Path]:
    """The modules on a shelf."""
    return sorted(file for file in (ROOT / shelf).glob("*.py") if not file.name.startswith("_"))


def sources(*folders: str) -> list[Path]:
    """All Python files below some folders of the project."""
    return sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))


@functools.cache
def nodes_of(file: Path) -> tuple[ast.AST, ...]:
    """All that a module is made of."""
    return tuple(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


def named_in(*folders: str) -> str:
    """The text of all tests (and what they compare with) below some folders of tests, but for this file."""
    return "\n".join(
        file.read_text(encoding="utf-8")
        for folder in folders
        for pattern in ("*.py", "golden.txt", "devices_*.yaml")
        for file in sorted((ROOT / "tests" / folder).rglob(pattern))
        if file != Path(__file__)
    )


def python(*args: str, cwd: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run this interpreter; what fails shows why."""
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, *args], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def loaded(code: str, names: set[str], cwd: Path, *words: str) -> set[str]:
    """Which of some modules are there after some code, and after a command line if there are ``words``."""
    call = f"import soakwatch.cli.main\nassert soakwatch.cli.main.run({list(words)!r}) == 0\n" if words else ""
    script = f"import sys\n{code}{call}print(*({names!r} & set(sys.modules)), file=sys.stderr)"
    return set(python("-c", script, cwd=cwd).stderr.splitlines()[-1].split())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as it would be published."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: Path) -> None:
    """Its top level is the import packages and the wheel's own folder; no test, bench or cache comes along."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    (info,) = tops - PACKAGES
    assert tops >= PACKAGES
    assert re.fullmatch(r"soakwatch-[\w.]+\.dist-info", info)
    assert f"{info}/licenses/LICENSE" in names
    assert not [name for name in names if "__pycache__" in name or "tests" in name.split("/")]


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    """Code, type markers, schema, styles and templates: what lies in a package is in the wheel."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *CODE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    tracked = {line.partition("/")[2] for line in listed.stdout.splitlines() if (ROOT / line).is_file()}
    tracked = {name for name in tracked if name.partition("/")[0] in PACKAGES}
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    assert tracked <= packed
    for package in PACKAGES:
        assert f"{package}/py.typed" in packed
    for data in ("verdict.schema.json", "style.css", "page.html.jinja", "macros.html.jinja", "blocks.html.jinja"):
        assert f"soakwatch/report/{data}" in packed


def test_the_wheel_brings_both_commands(wheel: Path) -> None:
    """The entry points name callables that exist."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt")]
        points = ConfigParser()
        points.read_string(archive.read(name).decode())
    scripts = dict(points["console_scripts"])
    assert set(scripts) == {"soakwatch", "soakwatch-agent"}
    calls = "; ".join(
        f"from {module} import {function}; assert callable({function})"
        for module, _, function in (target.partition(":") for target in scripts.values())
    )
    python("-c", calls, cwd=ROOT.parent)


def test_the_wheel_works_from_elsewhere(wheel: Path, tmp_path: Path) -> None:
    """Installed without the checkout, the packages import from there, and the command lists its rules and schema."""
    target, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    install = ("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-compile", "--target")
    command = [sys.executable, *install, str(target), str(wheel)]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    path = os.pathsep.join([str(target), sysconfig.get_paths()["purelib"]])
    places = python(
        "-c",
        "import soakwatch, soakwatch_agent, soakwatch_model, soakwatch_rules as r;"
        "print(soakwatch.__file__, soakwatch_agent.__file__, soakwatch_model.__file__, r.__file__, sep='\\n')",
        cwd=elsewhere,
        path=path,
    ).stdout.split()
    assert [Path(path).parent.parent for path in places] == [target] * 4
    module = ("-m", "soakwatch.cli")
    assert "memory_growth" in python(*module, "rules", cwd=elsewhere, path=path).stdout
    assert '"$schema"' in python(*module, "schema", "verdict", cwd=elsewhere, path=path).stdout


def test_packages_import_one_way() -> None:
    """The vocabulary imports numpy at most, which the agent is spared; the rules and the agent not each other."""
    allowed = {
        "collector/soakwatch_model": {"numpy", "soakwatch_model"},
        "agent": {"psutil", "soakwatch_agent", "soakwatch_model"},
        "rules": {"numpy", "scipy", "soakwatch_rules", "soakwatch_model"},
    }
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for folder, own in allowed.items()
        for file in sources(folder)
        for name in _imported(file)
        if name not in own | set(sys.stdlib_module_names)
    ]
    assert wrong == []


SEAMS = (
    "soakwatch.core",
    "soakwatch.plan.parts",
    "soakwatch.plan.sink_plan",
    "soakwatch.sources.abc",
    "soakwatch.sources.answer_builder",
    "soakwatch.sources.generator_tree",
    "soakwatch.sources.hardware_readings",
    "soakwatch.sources.mapping",
    "soakwatch.sources.profiles",
    "soakwatch.sources.session_state",
    "soakwatch.sources.transport.http",
    "soakwatch.sources.transport.http_client",
    "soakwatch.sources.transport.tls",
    "soakwatch.transfer.sinks.abc",
    "soakwatch.transfer.sinks.block",
    "soakwatch_model",
)
"""What a plug-in may import of the core: a change of these is a change for plug-ins."""


def _plugins() -> list[Path]:
    """The folders of our plug-ins; what only tests use is none."""
    return sorted(
        file.parent for file in (ROOT / "collector/plugins").glob("*/pyproject.toml") if file.parent.name != "testing"
    )


def _project(folder: Path) -> dict[str, Any]:
    return cast("dict[str, Any]", tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def test_a_plugin_imports_the_seams_and_nothing_of_ours_imports_a_plugin() -> None:
    """Whoever changes another module of the core need not look at the plug-ins, and none of them at another."""
    plugins = {f"soakwatch_{folder.name}" for folder in _plugins()}
    core = [file for file in sources(*CODE) if not file.is_relative_to(ROOT / "collector/plugins")]
    wrong = [f"{file.relative_to(ROOT)} imports {name}" for file in core for name in plugins & set(_imported(file))]
    for folder in _plugins():
        own = (*SEAMS, f"soakwatch_{folder.name}")
        for file in sorted(folder.rglob("*.py")):
            for node in nodes_of(file):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                ours = [name for name in names if name.startswith("soakwatch")]
                wrong += [
                    f"{file.relative_to(ROOT)} imports {name}"
                    for name in ours
                    if not any(name == seam or name.startswith(f"{seam}.") for seam in own)
                ]
    assert wrong == []


def test_every_plugin_has_an_extra_of_its_name_and_is_known_where_it_is_not_installed() -> None:
    """Its folder, its distribution and the extra that installs it have one name, and so has what it brings."""
    extras = _project(ROOT)["optional-dependencies"]
    for folder in _plugins():
        own = _project(folder)
        ((group, points),) = own["entry-points"].items()
        kind = group.removeprefix("soakwatch.")
        assert points == {folder.name: f"soakwatch_{folder.name}"}
        assert extras[folder.name] == [own["name"]] == [f"soakwatch-{folder.name}"]
        assert own["name"] in extras[kind]
        assert f"{plugins().get(folder.name)}s" == kind, "pyproject.toml is newer than .venv: run tests/run"
    assert sorted(plugins()) == [folder.name for folder in _plugins()]


def test_every_extra_that_a_sentence_names_exists() -> None:
    """A line to be copied installs what it says."""
    extras = _project(ROOT)["optional-dependencies"]
    files = [*sources(*CODE), *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")]
    named = {name for file in files for name in re.findall(r"soakwatch\[([a-z,]+)\]", file.read_text("utf-8"))}
    assert {name for names in named for name in names.split(",")} <= set(extras)


def _lists_of_metrics(least: int, prefix: str, *without: str) -> list[str]:
    """The assignments of modules that hold so many names of metrics, outside of some folders."""
    found = []
    for file in sources(*CODE, "dashboards"):
        place = str(file.relative_to(ROOT))
        text = file.read_text(encoding="utf-8")
        if any(folder in place for folder in ("soakwatch_model", *without)) or text.count(f'"{prefix}') < least:
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                names = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
                if (
                    sum(isinstance(name, str) and name.startswith(prefix) and name in BY_NAME for name in names)
                    >= least
                ):
                    found.append(f"{place}:{node.lineno}")
    return found


def test_what_is_known_of_metrics_stands_in_the_catalogue() -> None:
    """Lists of them elsewhere say again what it says, and come to disagree: they may only become fewer."""
    assert _lists_of_metrics(2, "load.", "/sources/", "/plugins/") == []
    every = _lists_of_metrics(3, "")
    assert len(every) <= 15, every


RECORD = ROOT / "collector" / "soakwatch" / "record"
SQL = re.compile(
    r"\A\s*(SELECT\s.+\sFROM|INSERT (OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE|PRAGMA)\s", re.DOTALL
)
SQL_WORD = re.compile("SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA")
"""With one of these a statement begins: of files without them none is parsed."""


def _outside_the_record() -> list[Path]:
    """Every module of the packages that is no part of the record, and no double of a test."""
    testing = ROOT / "collector" / "plugins" / "testing"
    return [file for file in sources(*CODE) if not file.is_relative_to(RECORD) and not file.is_relative_to(testing)]


def test_only_the_record_knows_its_private_modules() -> None:
    """Nothing outside of soakwatch.record imports a module of it that begins with an underscore."""
    wrong = []
    for file in _outside_the_record():
        if "soakwatch.record" not in file.read_text(encoding="utf-8"):
            continue
        for node in nodes_of(file):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            wrong += [f"{file.relative_to(ROOT)} imports {name}" for name in names if "soakwatch.record._" in name]
    assert wrong == []


def test_only_the_record_speaks_sql() -> None:
    """No other module imports sqlite3, or holds a statement of SQL (InfluxQL is another language), but for the one file
    of the lab server's queue, and the one that asks DuckDB."""
    wrong = []
    influxql = [RECORD.parent / "transfer" / "sinks" / name for name in ("influxdb", "grafana")]
    for file in _outside_the_record():
        if file in {RECORD.parent / "lab" / "_store.py", RECORD.parent / "transfer" / "archive" / "_database.py"}:
            continue
        text = file.read_text(encoding="utf-8")
        if "sqlite3" in text and "sqlite3" in _imported(file):
            wrong.append(f"{file.relative_to(ROOT)} imports sqlite3")
        wrong += [
            f"{file.relative_to(ROOT)}:{node.lineno} holds SQL"
            for node in (nodes_of(file) if SQL_WORD.search(text) else ())
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
            if not any(file.is_relative_to(folder) for folder in influxql)
        ]
    assert wrong == []


SENTENCES = frozenset({"reason", "sentence"})


def _reads(node: ast.AST, names: frozenset[str]) -> bool:
    """Whether this is the value of an attribute of one of these names, or is made of one by its methods."""
    while isinstance(node, ast.Call | ast.Attribute):
        if isinstance(node, ast.Attribute) and node.attr in names:
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def test_a_reason_is_read_to_be_shown() -> None:
    """No code takes apart, compares or searches what code wrote for people: what others must know is a fact."""
    wrong = []
    for file in sources("rules", "collector"):
        place = str(file.relative_to(ROOT))
        # Errors of other programs, lines that a database refused, and the tests of rules have reasons too.
        if any(part in place for part in ("/sources/", "/plugins/", "/sinks/push.py")):
            continue
        for node in nodes_of(file):
            parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr != "rstrip":
                parts = [node.func.value]
            if any(_reads(part, SENTENCES) for part in parts):
                wrong.append(f"{place}:{getattr(node, 'lineno', 0)}")
    assert wrong == []


def test_numbers_of_a_finding_are_only_shown() -> None:
    """By name they are read by the rule that made them, by the report, and where they are stored."""
    wrong = []
    for file in sources("rules", "collector", "dashboards"):
        place = str(file.relative_to(ROOT))
        if any(part in place for part in ("/detectors/", "/report/", "/record/findings.py", "/testing/")):
            continue
        for node in nodes_of(file):
            read = [node.value] if isinstance(node, ast.Subscript) else []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
                read = [node.func.value]
            elif isinstance(node, ast.Compare):
                read = node.comparators
            if any(isinstance(each, ast.Attribute) and each.attr == "numbers" for each in read):
                wrong.append(f"{place}:{getattr(node, 'lineno', 0)}")
    assert wrong == []


def test_live_and_final_judging_go_through_one_function() -> None:
    """Rulings are made by adjudicate alone, which both call; nothing else rules about a finding."""
    rulings = {step.decide.__name__ for step in RULINGS}
    home = ROOT / "collector" / "soakwatch" / "judge" / "adjudicate"
    calls: dict[str, set[str]] = {}
    for file in sources(*CODE):
        if "adjudicate" not in (text := file.read_text(encoding="utf-8")) and ".ruled(" not in text:
            continue
        for node in nodes_of(file):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                calls.setdefault(name, set()).add(str(file.relative_to(ROOT / "collector")))
            elif isinstance(node, ast.ImportFrom) and node.module and ".adjudicate." in node.module:
                wrong = rulings & {alias.name for alias in node.names}
                assert not wrong or file == home / "order.py", f"{file} imports {wrong}"
    assert calls["adjudicate"] == {"soakwatch/judge/judge.py", "soakwatch/judge/live/evaluator.py"}
    assert all(file.startswith("soakwatch/judge/adjudicate/") for file in calls["ruled"])


def _imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in nodes_of(file):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


def test_a_section_is_blocks_and_holds_no_html() -> None:
    """What a page looks like stands in templates: a section's text has no markup, and nothing draws but its blocks."""
    for file in (CODE["collector"] / "soakwatch/report/sections").glob("[!_]*.py"):
        constants = [node.value for node in nodes_of(file) if isinstance(node, ast.Constant)]
        markup = re.compile(r"</?[a-z][a-z0-9]*[ >]|{[%{]")
        assert not [text for text in constants if isinstance(text, str) and markup.search(text)], file.name
        drawing = {node.name for node in nodes_of(file) if isinstance(node, ast.FunctionDef)} & {"blocks", "facts"}
        assert drawing == {"blocks"}, file.name


def test_the_command_line_is_light(tmp_path: Path) -> None:
    """Neither importing the command line nor its help loads numpy, scipy or pydantic, or a protocol."""
    heavy = {"numpy", "scipy", "pydantic", "yaml", *PROTOCOLS}
    assert loaded("", heavy, tmp_path, "--help") == set()


@pytest.mark.parametrize("word", ["pollers", "loads", "sinks", "profiles", "rules", "metrics"])
def test_a_list_is_light(word: str, tmp_path: Path) -> None:
    """What is listed is not loaded: no library of a protocol, and no arithmetic."""
    assert loaded("", {"numpy", "scipy", *PROTOCOLS}, tmp_path, word) == set()


def test_a_running_collector_is_light(tmp_path: Path) -> None:
    """What a run and its live judge import holds no scipy, no plots and no page: those wait for the end. Protocols
    wait for a source that speaks them."""
    heavy = {"scipy", "jinja2", "tsdownsample", *PROTOCOLS}
    code = (
        "import soakwatch.cli.commands.run, soakwatch.cli.foreground\n"
        "import soakwatch.engine.start, soakwatch.judge.record_verdict\n"
        "from soakwatch.plan.rule_plan import planned_rules\n"
        "from soakwatch.sources.source_modules import poller_module\n"
        "poller_module('local'), poller_module('command'), planned_rules(())\n"
    )
    assert loaded(code, heavy, tmp_path) == set()


def test_a_verdict_on_a_terminal_draws_nothing(tmp_path: Path) -> None:
    """Nor does it load what a page is made with."""
    table = tmp_path / "night.csv"
    rows = (f"2026-11-14T20:{minute:02}:00Z,{minute % 3}\n" for minute in range(60))
    table.write_text("time,cpu\n" + "".join(rows), encoding="utf-8")
    heavy = {"jinja2", *PROTOCOLS}
    assert heavy & loaded("", heavy, tmp_path, "judge", "night.csv") == set()


LOADS = {
    "transport.http": {"httpx"},
    "transport.snmp": {"gufo"},
    "transport.ssh": {"asyncssh", "cryptography"},
    "exposition_page": {"prometheus_client"},
}
"""The libraries that a source loads before it is started, by what it imports."""


def _speaks(name: str) -> set[str]:
    """The libraries that a source may load before it is started."""
    folders = [ROOT / "collector/soakwatch/sources/pollers", ROOT / "collector/plugins"]
    own = [file for folder in folders for file in (*folder.glob(f"{name}.py"), *(folder / name).rglob("*.py"))]
    text = "".join(file.read_text(encoding="utf-8") for file in own)
    return {library for way, libraries in LOADS.items() if way in text for library in libraries}


EACH = """
import json, os, sys
from soakwatch.sources.source_modules import poller_module
found = {"": sorted(set(WATCHED) & set(sys.modules))}
for name in NAMES:
    reader, writer = os.pipe()
    if os.fork() == 0:
        poller_module(name)
        os.write(writer, json.dumps(sorted(set(WATCHED) & set(sys.modules))).encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as told:
        found[name] = json.loads(told.read() or '["it cannot be loaded"]')
    os.wait()
print(json.dumps(found))
"""
"""Loads each source in a process of its own, forked from one that has loaded what they all need."""


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Which of the libraries, and of the doubles of the tests, each source loads."""
    head = f"WATCHED = {sorted({*PROTOCOLS, 'soakwatch_testing'})!r}\nNAMES = {list(INSTALLED.pollers.names())!r}\n"
    found: dict[str, list[str]] = json.loads(python("-c", head + EACH, cwd=tmp_path_factory.mktemp("speaking")).stdout)
    return found


@pytest.mark.parametrize("name", ["", *INSTALLED.pollers.names()])
def test_a_source_loads_what_it_speaks_and_nothing_else(name: str, speaking: dict[str, list[str]]) -> None:
    """A run of SNMP does not pay for SSH; the doubles of the tests are not a part of any run. What they all need
    speaks nothing."""
    assert set(speaking[name]) <= _speaks(name)


@pytest.mark.parametrize("file", [file for shelf in SHELVES for file in files_of(shelf)], ids=lambda file: file.stem)
def test_every_file_on_a_shelf_says_what_it_is(file: Path) -> None:
    """Its name is a word in snake case and its docstring begins with one sentence: lists are made of both."""
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", file.stem)
    first, *rest = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").splitlines()
    sentence = " ".join([first, *rest]).partition("\n\n")[0]
    assert len(sentence) > 10
    assert first[0].isupper(), f"the docstring's first line begins with a capital letter: {first}"


def test_every_poller_and_load_has_its_config_and_start() -> None:
    """The file is the source: it holds Config with a description of every key of its own, and an async start."""
    for shelf in (INSTALLED.pollers, INSTALLED.loads):
        for name in shelf.names():
            config = poller_module(name).config
            if shelf is INSTALLED.pollers and name != "local":
                peer = {"host", "url", "listen"} & config.model_fields.keys()
                assert peer, f"{name} needs the key host or url, which soakwatch probe fills in"
            undocumented = [key for key, field in config.model_fields.items() if not field.description]
            assert (name, undocumented) == (name, [])


def test_every_rule_reads_metrics_of_the_catalogue() -> None:
    """The file is the rule: its class has its name, a version, a summary, and metrics that exist."""
    for name in INSTALLED.rules.names():
        rule = rule_class(name)
        assert rule.name == name
        assert rule.version >= 1
        assert rule.summary
        assert set(rule.metrics) <= set(BY_NAME)
        assert rule.scope in {"object", "metric", "target"}
        assert rule().definition()
    assert {outcome.value for outcome in Outcome} == {"fail", "inconclusive", "warn", "pass", "not applicable"}


OTHER_WORDS = {
    "rules/soakwatch_rules/events/operator_events.py": "kinds of events",
    "collector/soakwatch/judge/calibration.py": "keys of a file",
    "collector/soakwatch/judge/unjudged_columns.py": "words in the names of columns",
    "collector/soakwatch/cli/demo.py": "what the demo must find",
    "collector/soakwatch/sources/profiles/profile_keys.py": "how a column is taken",
    "collector/soakwatch/report/json.py": "keys of a finding",
    "collector/soakwatch/web/json_state.py": "keys of a finding",
}
"""Where several words that are names of rules mean something else, or the very rules that a demonstration is about."""


def test_no_list_of_rules_is_kept_outside_of_the_rules() -> None:
    """What others need to know of a rule it declares itself, as its traits: a new rule is in no list elsewhere."""
    names = set(INSTALLED.rules.names())
    lists = []
    for file in sources("agent", "rules", "collector"):
        where = file.relative_to(ROOT).as_posix()
        if where in OTHER_WORDS or where.startswith(("rules/soakwatch_rules/detectors/", "rules/soakwatch_rules/scen")):
            continue
        text = file.read_text(encoding="utf-8")
        if sum(f'"{name}"' in text or f"'{name}'" in text for name in names) < 2:
            continue
        for node in nodes_of(file):
            inside: list[ast.expr | None] = []
            if isinstance(node, ast.Set | ast.Tuple | ast.List):
                inside = [*node.elts]
            elif isinstance(node, ast.Dict):
                inside = [*node.keys, *node.values]
            words = {each.value for each in inside if isinstance(each, ast.Constant) and isinstance(each.value, str)}
            if len(words & names) > 1:
                lists.append(f"{where}:{getattr(node, 'lineno', 0)} {sorted(words & names)}")
    assert not lists, lists


def test_what_rules_get_and_declare_stays_small() -> None:
    """What a rule gets, and what it declares of itself, have at most 14 fields: what belongs together is one value."""
    sizes = {each.__name__: len(dataclasses.fields(each)) for each in (Case, Traits)}
    assert max(sizes.values()) <= 14, sizes


def test_there_is_one_event_and_one_window_of_time() -> None:
    """What happens is an Event, a stretch of time a Window, everywhere; what carries more has a window in it."""
    named: dict[str, list[str]] = {"Event": [], "Window": [], "Interval": [], "Span": [], "Stretch": []}
    bare = []
    for file in sources("agent", "rules", "collector"):
        for node in nodes_of(file):
            if not isinstance(node, ast.ClassDef):
                continue
            named.get(node.name.lstrip("_"), []).append(file.name)
            fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
            if {ast.unparse(part.target) for part in fields} == {"begin_ns", "end_ns"}:
                bare.append(node.name)
    assert named == {"Event": ["event.py"], "Window": ["window.py"], "Interval": [], "Span": [], "Stretch": []}
    assert bare == ["Window"]


def test_the_data_of_json_has_one_type() -> None:
    """What is written or read as JSON is a Tree, which the vocabulary defines."""
    makers = [
        file.name
        for file in sources("agent", "rules", "collector")
        for node in nodes_of(file)
        if isinstance(node, ast.Assign) and {ast.unparse(target) for target in node.targets} & {"Tree", "Json", "JSON"}
        if not isinstance(node.value, ast.Constant)
    ]
    assert makers == ["tree.py"]


def test_roles_are_those_of_the_vocabulary() -> None:
    """No comparison and no argument spells the role of a target out."""
    spelt = []
    for file in sources("agent", "rules", "collector"):
        for node in nodes_of(file):
            given: list[ast.expr] = []
            if isinstance(node, ast.Compare) and getattr(node.left, "attr", getattr(node.left, "id", "")) == "role":
                given = node.comparators
            elif isinstance(node, ast.keyword) and node.arg == "role":
                given = [node.value]
            spelt += [f"{file.name}:{part.lineno}" for part in given if getattr(part, "value", None) in ROLES]
    assert not spelt, spelt


def test_every_probe_brings_metrics_of_the_catalogue() -> None:
    """The file is the probe: each brings something, and what the catalogue says is read by a probe has one."""
    assert all(source(name).metrics for name in probe_names())
    assert {metric.probe for metric in BY_NAME.values()} == {"", *probe_names()}


def test_every_file_on_a_shelf_has_a_test_that_names_it() -> None:
    """A rule by its class, a source or command by its quoted name, a probe by its metrics, a section by its heading."""
    rules, agent, everything = named_in("rules"), named_in("agent"), named_in(".")
    unnamed = [f"rule {name}" for name in INSTALLED.rules.names() if camel_case(name) not in rules]
    unnamed += [
        f"{shelf.word} {name}"
        for shelf in (INSTALLED.pollers, INSTALLED.loads, COMMANDS)
        for name in shelf.names()
        if not re.search(rf"""["'/\[ ]{name}["':,\] ]""", everything)
    ]
    words = frozenset(re.findall(r"[\w-]+", everything))
    unnamed += [f"profile {name}" for name in load_profiles() if name not in words]
    unnamed += [f"probe {n}" for n in probe_names() if not any(metric in agent for metric in source(n).metrics)]
    report = named_in("collector/report", "e2e")
    unnamed += [
        f"section {section.name}"
        for section in all_sections()
        if not re.search(rf"""["'>]({section.name}|{section.title})["'<]""", report)
    ]
    assert unnamed == [], "CONTRIBUTING.md says, for each kind, where its test is"


def test_every_command_shows_an_example(soakwatch: Command) -> None:
    """The help of every command that the help lists works, and ends with examples of the command itself."""
    listed = soakwatch("--help").stdout
    for name in COMMANDS.names():
        assert re.search(rf"^  {name} ", listed, re.MULTILINE)
        page = soakwatch(name, "--help")
        assert page.returncode == 0, page.stderr
        assert re.search(rf"Examples?:\n\s+.*soakwatch {name}", page.stdout), name


def test_no_file_names_a_machine() -> None:
    """No tracked file holds the path of someone's machine."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = re.compile(rb"(?<![\w/])/(?:work|root|home)/\w")
    names = [
        name
        for name in listed.stdout.split("\0")
        if name and (file := ROOT / name).is_file() and not file.is_symlink() and paths.search(file.read_bytes())
    ]
    assert names == []

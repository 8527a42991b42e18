"""The directory is the registry: names without imports, modules on demand, conventions held."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path

import pytest

from soakwatch.cli.main import run
from soakwatch.cli.source_tables import show_source, show_sources
from soakwatch.core.errors import PlanError
from soakwatch.core.installation import to_add_plugin
from soakwatch.core.registry import INSTALLED, PluginFolder, Registry, is_load, loads, pollers, rule_class, rules
from soakwatch.plan.target_address import source_of
from soakwatch.sources.source_modules import poller_module
from soakwatch_rules.traits import traits_of

TINY = Registry(
    PluginFolder("plugin_folders.pollers", "poller"),
    PluginFolder("plugin_folders.loads", "load"),
    PluginFolder("plugin_folders.detectors", "rule"),
)
TINY_SUMMARIES = {"poller": "A source that counts its polls", "load": "A load that pumps nothing"}
BROKEN = Registry(
    PluginFolder("plugin_folders.broken", "poller"),
    PluginFolder("plugin_folders.loads", "load"),
    PluginFolder("plugin_folders.broken", "rule"),
)


@pytest.fixture(autouse=True)
def _tiny_house(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the sources and rules beside this file importable."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    yield
    for name in [name for name in sys.modules if name.startswith("plugin_folders")]:
        del sys.modules[name]


def test_names_and_summaries_come_from_files_without_import() -> None:
    """Listing reads the folder and the docstrings; no module is imported, and underscored files are not listed."""
    assert pollers(TINY) == ("locked", "probe")
    assert loads(TINY) == ("pump",)
    assert rules(TINY) == ("slow_drift",)
    assert TINY.pollers.summary("probe") == "A source that counts its polls"
    assert not [name for name in sys.modules if name.startswith("plugin_folders")]


def test_a_source_is_looked_up_in_pollers_then_loads() -> None:
    """A name is found on either shelf, and the module's config class and start come with it."""
    assert poller_module("probe", TINY).kind == "poller"
    pump = poller_module("pump", TINY)
    assert (pump.kind, pump.name, pump.config.__name__) == ("load", "pump", "Config")


def test_a_rule_is_the_class_that_its_file_names() -> None:
    """Module slow_drift holds SlowDrift."""
    assert rule_class("slow_drift", TINY).name == "slow_drift"


def test_what_breaks_the_convention_is_named() -> None:
    """Unknown names give the nearest; for a module without its class or its start the message says what to fix."""
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: poller_module("prob", TINY), "unknown source 'prob'; did you mean 'probe'?"),
        (lambda: rule_class("slowdrift", TINY), "unknown rule 'slowdrift'; did you mean 'slow_drift'?"),
        (lambda: rule_class("zzz", TINY), "unknown rule 'zzz'; known here: slow_drift"),
        (
            lambda: poller_module("unfinished", BROKEN),
            "the poller 'unfinished' has no 'async def start': fix plugin_folders.broken.unfinished",
        ),
        (
            lambda: poller_module("odd_one", BROKEN),
            "the poller 'odd_one' has no class Config derived from SourceConfig: fix plugin_folders.broken.odd_one",
        ),
        (
            lambda: rule_class("odd_one", BROKEN),
            "the rule 'odd_one' has no class OddOne: fix plugin_folders.broken.odd_one",
        ),
    ]
    for call, sentence in cases:
        with pytest.raises(PlanError) as caught:
            call()
        assert str(caught.value) == sentence


def test_a_plugin_that_is_not_installed_is_named_with_what_installs_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a plan, an address and a list: one sentence, and never the nearest of the names that are there."""
    missing = f"the poller 'redfish' is a plug-in that is not installed: {to_add_plugin('redfish')}"
    with pytest.raises(PlanError) as caught:
        poller_module("redfish", TINY)
    assert str(caught.value) == missing
    with pytest.raises(PlanError) as caught:
        source_of("redfish://bmc1", TINY)
    assert str(caught.value) == f"the target 'redfish': {missing}"
    with pytest.raises(PlanError) as caught:
        show_source(TINY.pollers, "redfish", TINY)
    assert str(caught.value) == missing
    show_sources(TINY.pollers)
    assert f"not installed: redfish: {to_add_plugin('redfish')}" in capsys.readouterr().err


def test_a_record_is_judged_alike_where_the_plugin_of_its_load_is_not_installed() -> None:
    """A silent generator leaves a verdict open: whether a source is a load must not depend on what is installed."""
    assert [name for name in ("pump", "trex", "redfish", "probe") if is_load(name, TINY)] == ["pump", "trex"]


def distribution(folder: Path, kind: str, name: str, text: str) -> None:
    """Another distribution in a folder of the path: one module, and the entry point that names it."""
    info = folder / "foreign-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[soakwatch.{kind}s]\n{name} = foreign_{kind}\n")
    (folder / f"foreign_{kind}.py").write_text(text)


@pytest.mark.parametrize(("kind", "module"), [("poller", "pollers/probe.py"), ("load", "loads/pump.py")])
def test_an_entry_point_adds_a_source(
    kind: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A distribution that names a module in the group of its kind is found beside the folder, by plans and commands."""
    distribution(tmp_path, kind, "foreign", (Path(__file__).parents[1] / "plugin_folders" / module).read_text())
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = INSTALLED.pollers if kind == "poller" else INSTALLED.loads
    assert "foreign" in folder.names()
    assert ("foreign" in pollers(), "foreign" in loads()) == (kind == "poller", kind == "load")
    assert folder.summary("foreign") == TINY_SUMMARIES[kind]
    assert f"foreign_{kind}" not in sys.modules
    source = poller_module("foreign")
    assert (source.kind, source.config.__module__) == (kind, f"foreign_{kind}")
    assert run([f"{kind}s", "foreign"]) == 0
    assert "required" in capsys.readouterr().out
    del sys.modules[f"foreign_{kind}"]


FOREIGN_RULE = '''"""Door sensors: a cabinet that somebody opened."""
from dataclasses import dataclass, replace
from typing import ClassVar
from soakwatch_rules.finding_draft import draft
from soakwatch_model.finding import Outcome
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.traits import RuleWords, Traits


@dataclass(frozen=True, slots=True)
class DoorOpened:
    name: ClassVar = "door_opened"
    version: ClassVar = 1
    summary: ClassVar = "a cabinet was opened"
    metrics: ClassVar = ("system.temperature",)
    scope: ClassVar = "metric"
    phases: ClassVar = ()
    spec: ClassVar = RuleSpec("one sample")

    def definition(self):
        return "a cabinet is open when its sensor is below 10 Cel"

    def judge(self, case):
        (series,) = case.series
        cold = series.values.min() < 10
        return (replace(draft(self, case, series), outcome=Outcome.FAIL if cold else Outcome.PASS, reason="open"),)


TRAITS = Traits(RuleWords("somebody opened the cabinet"))
'''


def test_an_entry_point_adds_a_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rule of another distribution judges beside the shipped ones, and its own traits word the headline."""
    distribution(tmp_path, "rule", "door_opened", FOREIGN_RULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "door_opened" in rules()
    assert run(["rules", "door_opened"]) == 0
    assert "below 10 Cel" in capsys.readouterr().out
    rows = "".join(f"{second},fw,system.temperature,,{5 if second > 300 else 30}\n" for second in range(0, 600, 10))
    (tmp_path / "night.csv").write_text("time,target,metric,object,value\n" + rows)
    assert run(["judge", str(tmp_path / "night.csv"), "--rule", "door_opened"]) == 1
    assert "somebody opened the cabinet" in capsys.readouterr().out
    del sys.modules["foreign_rule"]
    traits_of.cache_clear()


def test_everything_installed_holds_the_convention() -> None:
    """Every poller, load and rule in the house imports, has a summary, and honours its contract."""
    for name in (*pollers(), *loads()):
        assert poller_module(name).config.model_fields.keys() >= {"interval", "timeout", "required"}
    for name in rules():
        rule = rule_class(name)
        assert rule.name == name
        assert rule().definition()
    for shelf in (INSTALLED.pollers, INSTALLED.loads, INSTALLED.rules):
        assert all(shelf.summary(name) for name in shelf.names())


def test_the_distributions_are_read_once_for_all_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a file to read, and a plan asks for pollers, loads, rules and sinks."""
    reads: list[object] = []
    read = metadata.distributions

    def counted(*, path: list[str]) -> Iterable[metadata.Distribution]:
        reads.append(path)
        return read(path=path)

    monkeypatch.syspath_prepend(str(tmp_path))  # nothing is known of this path yet
    monkeypatch.setattr(metadata, "distributions", counted)
    assert pollers()
    assert loads()
    assert rules()
    assert INSTALLED.sinks.names()
    assert len(reads) == 1


def test_importing_the_command_line_is_light() -> None:
    """Neither the command line nor a list of its commands imports numpy, scipy, pydantic or yaml."""
    heavy = {"numpy", "scipy", "pydantic", "yaml", "apscheduler", "rich", "psutil"}
    code = (
        "import sys, soakwatch.cli.main as cli\n"
        "code = cli.run(['--help'])\n"
        f"print(sorted({heavy!r} & set(sys.modules)), code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[] 0"

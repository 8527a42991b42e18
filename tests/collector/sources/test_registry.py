"""The directory is the registry: names without imports, modules on demand, conventions held."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from soakwatch.core.errors import PlanError
from soakwatch.core.registry import INSTALLED, PluginFolder, Registry, loads, pollers, rule_class, rules
from soakwatch.sources.registry import poller_module

TINY = Registry(
    PluginFolder("plugin_folders.pollers", "poller"),
    PluginFolder("plugin_folders.loads", "load"),
    PluginFolder("plugin_folders.detectors", "rule"),
)
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
    assert TINY.pollers.summary("probe") == "A source that counts its looks"
    assert not [name for name in sys.modules if name.startswith("plugin_folders")]


def test_a_source_is_looked_up_in_pollers_then_loads() -> None:
    """A name is found on either shelf, and the module's config class and start come with it."""
    assert poller_module("probe", TINY).kind == "poller"
    found = poller_module("pump", TINY)
    assert (found.kind, found.name, found.config.__name__) == ("load", "pump", "Config")


def test_a_rule_is_the_class_that_its_file_names() -> None:
    """Module slow_drift holds SlowDrift."""
    assert rule_class("slow_drift", TINY).name == "slow_drift"


def test_what_breaks_the_convention_is_named() -> None:
    """Unknown names give the nearest; a module without its class or its start says what to mend."""
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: poller_module("prob", TINY), "unknown source 'prob'; did you mean 'probe'?"),
        (lambda: rule_class("slowdrift", TINY), "unknown rule 'slowdrift'; did you mean 'slow_drift'?"),
        (lambda: rule_class("zzz", TINY), "unknown rule 'zzz'; known here: slow_drift"),
        (
            lambda: poller_module("unfinished", BROKEN),
            "the poller 'unfinished' has no 'async def start': mend plugin_folders.broken.unfinished",
        ),
        (
            lambda: poller_module("odd_one", BROKEN),
            "the poller 'odd_one' has no class Config made from SourceConfig: mend plugin_folders.broken.odd_one",
        ),
        (
            lambda: rule_class("odd_one", BROKEN),
            "the rule 'odd_one' has no class OddOne: mend plugin_folders.broken.odd_one",
        ),
    ]
    for call, sentence in cases:
        with pytest.raises(PlanError) as caught:
            call()
        assert str(caught.value) == sentence


def test_an_entry_point_adds_a_poller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution that names a module in the group of pollers is found beside the folder."""
    info = tmp_path / "foreign-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tiny.more]\nforeign = foreign_probe\n")
    source = (Path(__file__).parents[1] / "plugin_folders/pollers/probe.py").read_text()
    (tmp_path / "foreign_probe.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    house = Registry(PluginFolder("plugin_folders.pollers", "poller", "tiny.more"), TINY.loads, TINY.rules)
    assert pollers(house) == ("foreign", "locked", "probe")
    assert house.pollers.summary("foreign") == "A source that counts its looks"
    assert poller_module("foreign", house).config.__module__ == "foreign_probe"
    del sys.modules["foreign_probe"]


def test_everything_installed_holds_the_convention() -> None:
    """Every poller, load and rule in the house imports, has a summary, and honours its contract."""
    for name in (*pollers(), *loads()):
        assert poller_module(name).config.model_fields.keys() >= {"interval", "timeout", "required"}
    for name in rules():
        made = rule_class(name)
        assert made.name == name
        assert made().definition()
    for shelf in (INSTALLED.pollers, INSTALLED.loads, INSTALLED.rules):
        assert all(shelf.summary(name) for name in shelf.names())


def test_importing_the_command_line_is_light() -> None:
    """Neither the command line nor a list of its commands imports numpy, scipy, pydantic, bokeh or yaml."""
    heavy = {"numpy", "scipy", "pydantic", "bokeh", "yaml", "apscheduler", "rich", "psutil"}
    code = (
        "import sys, soakwatch.cli.main as cli\n"
        "code = cli.run(['--help'])\n"
        f"print(sorted({heavy!r} & set(sys.modules)), code, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[] 0"

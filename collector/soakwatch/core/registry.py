"""The folders are the registry: a plug-in is installed if its module is there; it is imported only when needed.

Module ``pollers/NAME.py`` is the poller NAME, ``loads/NAME.py`` the load NAME, ``detectors/NAME.py`` the rule NAME (its
class in CamelCase), package ``sinks/NAME`` with a class Config the sink NAME. Other distributions add modules by entry
points in the groups ``soakwatch.pollers``, ``soakwatch.loads``, ``soakwatch.rules``, ``soakwatch.sinks``, and
``soakwatch.executors`` for ``--on``. Ours are in ``collector/plugins``; the extras of this distribution name those that
are not installed.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

from soakwatch.core.errors import PlanError
from soakwatch.core.installation import to_add_plugin
from soakwatch.core.suggest import hint

if TYPE_CHECKING:
    from importlib import metadata

    from soakwatch_rules.rule import Rule


LOAD, EXECUTOR = "load", "executor"
_OF_A_KIND = re.compile(r"soakwatch-(\w+) *;.*\bextra *== *.(load|poller|executor|sink)s\b")
"""A requirement of an extra that installs all plug-ins of a kind: ``soakwatch-trex; extra == 'loads'``."""


@lru_cache(maxsize=1)
def plugins() -> Mapping[str, str]:
    """Our plug-ins, installed or not, and what each adds, by the extras ``loads``, ``pollers``, ``executors``
    and ``sinks``.

    Empty if Soakwatch itself is not installed, for then no extra can be.
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        required = requires("soakwatch") or ()
    except PackageNotFoundError:
        return {}
    return {found[1]: found[2] for line in required if (found := _OF_A_KIND.match(line))}


def not_installed(name: str) -> str | None:
    """The sentence that a plug-in of ours is not installed; None for any other name."""
    if name not in plugins():
        return None
    return f"the {plugins()[name]} {name!r} is a plug-in that is not installed: {to_add_plugin(name)}"


@dataclass(frozen=True, slots=True)
class PluginFolder:
    """One folder of modules: ``package`` is its import name ("" for entry points only), ``word`` what one of them is
    called.

    With ``holds``, only packages whose text has this line count; its modules are shared code.
    """

    package: str
    word: str
    group: str | None = None  # of entry points that add to it
    holds: str = ""

    def names(self) -> tuple[str, ...]:
        """All names of the folder and of entry points, sorted; imports nothing."""
        return tuple(sorted({*self._files(), *self._added()}))

    def missing(self) -> tuple[str, ...]:
        """For each plug-in of ours that would add to it and is not installed: its name and how to install it."""
        there = self.names()
        ours = sorted(name for name, word in plugins().items() if word == self.word and name not in there)
        return tuple(f"{name}: {to_add_plugin(name)}" for name in ours)

    def summary(self, name: str) -> str:
        """The first line of a module's docstring; imports nothing."""
        return self.docstring(name).partition("\n")[0].strip().rstrip(".")

    def docstring(self, name: str) -> str:
        """A module's docstring, parsed from its text unless it is loaded; imports nothing."""
        loaded = sys.modules.get(f"{self.package}.{name}")
        if loaded is not None and loaded.__doc__:
            return inspect.cleandoc(loaded.__doc__)
        file = self._files().get(name)
        if file is None:
            added = self._added().get(name)
            file = _file_of(added.module) if added else None
        if file is None:
            return ""
        return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""

    def module(self, name: str) -> ModuleType:
        """Imports and returns the module.

        Raises PlanError for an unknown name, with the nearest one, and if the import fails.
        """
        if name in self._files():
            full = f"{self.package}.{name}"
        elif name in self._added():
            full = self._added()[name].module
        else:
            raise PlanError(not_installed(name) or f"unknown {self.word} {name!r}{hint(name, self.names())}")
        try:
            return importlib.import_module(full)
        except ImportError as error:
            raise PlanError(f"the {self.word} {name!r} cannot be loaded: {error}") from error

    def _files(self) -> dict[str, Path]:
        folder = _folder_of(self.package) if self.package else None
        if folder is None:
            return {}
        return dict(_modules_in(folder, self.holds, _changed_ns(folder)))

    def _added(self) -> dict[str, metadata.EntryPoint]:
        if self.group is None:
            return {}
        stamps = tuple((folder, _changed_ns(folder)) for folder in sys.path)
        return dict(_entry_points(stamps).get(self.group, {}))


@dataclass(frozen=True, slots=True)
class Registry:
    """Where a plan's names are looked up."""

    pollers: PluginFolder
    loads: PluginFolder
    rules: PluginFolder
    sinks: PluginFolder = PluginFolder(
        "soakwatch.transfer.sinks", "sink", "soakwatch.sinks", "class Config(SinkConfig):"
    )
    executors: PluginFolder = PluginFolder("", EXECUTOR, "soakwatch.executors")


INSTALLED = Registry(
    PluginFolder("soakwatch.sources.pollers", "poller", "soakwatch.pollers"),
    PluginFolder("soakwatch.sources.loads", "load", "soakwatch.loads"),
    PluginFolder("soakwatch_rules.detectors", "rule", "soakwatch.rules"),
)


def pollers(registry: Registry = INSTALLED) -> tuple[str, ...]:
    """Names of all pollers."""
    return registry.pollers.names()


def loads(registry: Registry = INSTALLED) -> tuple[str, ...]:
    """Names of all loads."""
    return registry.loads.names()


def is_load(name: str, registry: Registry = INSTALLED) -> bool:
    """True if a source is a load, even if its plug-in is not installed where the record is judged."""
    return name in loads(registry) or plugins().get(name) == LOAD


def rules(registry: Registry = INSTALLED) -> tuple[str, ...]:
    """Names of all rules."""
    return registry.rules.names()


def rule_class(name: str, registry: Registry = INSTALLED) -> type[Rule]:
    """The class of a rule: ``MemoryGrowth`` in module ``memory_growth``.

    Raises PlanError for an unknown name, with the nearest one, and for a module without that class.
    """
    module = registry.rules.module(name)
    rule: object = getattr(module, camel_case(name), None)
    if not isinstance(rule, type) or not hasattr(rule, "judge"):
        raise PlanError(f"the rule {name!r} has no class {camel_case(name)}: fix {module.__name__}")
    return cast("type[Rule]", rule)


def camel_case(name: str) -> str:
    """The class name for a module.

    >>> camel_case("memory_growth")
    'MemoryGrowth'
    """
    return "".join(part.capitalize() for part in name.split("_"))


@lru_cache(maxsize=8)
def _entry_points(stamps: tuple[tuple[str, int], ...]) -> Mapping[str, Mapping[str, metadata.EntryPoint]]:
    """Our entry points by group and name. Finding them reads a file of every installed distribution, and a plan looks
    up each source and rule: read once for all groups, until a folder of the import path changes."""
    from importlib.metadata import distributions

    points: dict[str, dict[str, metadata.EntryPoint]] = {}
    for distribution in distributions(path=[folder for folder, _ in stamps]):
        for point in distribution.entry_points:
            if point.group.startswith("soakwatch."):
                points.setdefault(point.group, {}).setdefault(point.name, point)
    return points


@lru_cache(maxsize=64)
def _modules_in(folder: Path, holds: str, _stamp: int) -> Mapping[str, Path]:
    """The modules of a folder by name, or the packages that have a line; cached until the folder changes."""
    packages = {file.parent.name: file for file in folder.glob("[!_]*/__init__.py")}
    if holds:
        return {name: file for name, file in packages.items() if holds in file.read_text("utf-8").splitlines()}
    files = {file.stem: file for file in folder.glob("*.py") if not file.stem.startswith("_")}
    return {**packages, **files}


def _changed_ns(folder: str | Path) -> int:
    """When a folder's entries last changed; 0 if it does not exist."""
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


def _folder_of(package: str) -> Path | None:
    """The folder of a package; imports nothing."""
    top, *below = package.split(".")
    spec = find_spec(top)
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(location, *below)
        if folder.is_dir():
            return folder
    return None


def _file_of(module: str) -> Path | None:
    package, _, name = module.rpartition(".")
    if not package:
        spec = find_spec(name)
        return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None
    folder = _folder_of(package)
    for file in (folder / f"{name}.py", folder / name / "__init__.py") if folder else ():
        if file.is_file():
            return file
    return None

"""Names of modules that users know from before they moved: Robot's library, pytest's plugin, the profile tool."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from types import ModuleType
from typing import Final

MOVED: Final = {
    "soakwatch.robot": "soakwatch.integrations.robot",
    "soakwatch.pytest_plugin": "soakwatch.integrations.pytest_plugin",
    "soakwatch.profile": "soakwatch.sources.profiles",
    "soakwatch.profile.__main__": "soakwatch.sources.profiles.__main__",
}


class FormerNames(MetaPathFinder):
    """Finds a module under its former name; asked only for what nobody else finds."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 the import system's signature
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """The same file under the name that was asked for."""
        now = MOVED.get(fullname)
        spec = find_spec(now) if now is not None else None
        if spec is None or spec.origin is None:
            return None
        folders = spec.submodule_search_locations
        return spec_from_file_location(fullname, spec.origin, submodule_search_locations=folders)


def install() -> None:
    """Have Python ask for former names, once."""
    if not any(isinstance(finder, FormerNames) for finder in sys.meta_path):
        sys.meta_path.append(FormerNames())

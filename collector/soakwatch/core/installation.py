"""How this Soakwatch was installed, and the command that adds a package to it.

Soakwatch and its plug-ins are on no package index, and the `pip` that a user types is seldom the one of a pipx, uv or
Debian installation: a remedy that is copied from an error must work where the error was shown.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import soakwatch

_DEBIAN = Path("/usr/lib/soakwatch")


def to_add_plugin(name: str) -> str:
    """What adds a plug-in of ours: a command, and which file of a release it needs."""
    if (Path(soakwatch.__file__).parents[1] / "plugins" / name).is_dir():
        return f"{_pip()} install -e collector/plugins/{name} in the checkout"
    return f"{_to_add(f'./soakwatch_{name}-*.whl')} (a file of the release; docs/install.md)"


def to_add_package(*names: str) -> str:
    """What adds packages that only some need, in the ranges of versions that Soakwatch was tried with."""
    if Path(sys.prefix) == _DEBIAN:
        return "the Debian package lacks it, a wheelhouse of the release has it (docs/install.md)"
    return _to_add(*(f"'{_required(name)}'" for name in names))


def _to_add(*what: str) -> str:
    here = Path(sys.prefix)
    if (here / "pipx_metadata.json").is_file():
        return f"pipx inject soakwatch {' '.join(what)}"
    if (here / "uv-receipt.toml").is_file():
        return f"uv tool install ./soakwatch-*.whl --with {' --with '.join(what)}"
    return f"{_pip()} install {' '.join(what)}"


def _pip() -> str:
    """The pip of this Python, as a user must type it."""
    ours = Path(sys.executable).with_name("pip")
    return "pip" if shutil.which("pip") == str(ours) else str(ours)


def _required(name: str) -> str:
    """A package with its range of versions.

    >>> _required("numpy")
    'numpy<3,>=2.0'
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("soakwatch") or ()
    except PackageNotFoundError:
        return name
    found = (line.partition(";")[0].strip() for line in lines if re.match(rf"{re.escape(name)}\b(?!-)", line))
    return next(found, name)

"""Proves a release: the fast tests from its sdist, and every way of installation in bare Debian systems.

The systems are made by debootstrap and have no network: all that is installed there comes from the release.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from releasing.debian import RELEASES
from releasing.source import ReleaseError
from releasing.wheels import CONSTRAINTS, Target, tool

SUITES: Mapping[str, Target] = {
    "bookworm": Target("3.11", platform.machine()),
    "trixie": Target("3.13", platform.machine()),
}
"""Each Debian, and its python3."""
WAYS = ("wheelhouse", "pipx", "uv", "debian", "upgrade", "page")
_PACKAGES = "python3,python3-venv,adduser,pipx"
_IN_THE_BASE = Path(__file__).with_name("in_a_bare_system.sh")
_PAGE = Path(__file__).parents[2] / "docs/install.md"
_ISOLATED = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
_ENTER = (
    'ip link set lo up && mount -t proc proc "$0/proc" && exec chroot "$0" /bin/sh /release/in_a_bare_system.sh "$@"'
)


def default_bases() -> Path:
    """Where base systems are kept, for each takes minutes to make."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "soakwatch-bases"


def lacking() -> str:
    """Why this machine cannot prove an installation, in words; "" if it can."""
    if os.geteuid() != 0:
        return "a bare system is made and entered by root: run it as root"
    missing = [name for name in ("debootstrap", "unshare", "chroot", "ip") if not _found(name)]
    return f"not installed: {', '.join(missing)}" if missing else ""


def prove(suite: str, out: Path, bases: Path, ways: Sequence[str] = WAYS, earlier: Path | None = None) -> None:
    """Installs the release in ``out`` into a bare system of a Debian in ways of docs/install.md, and uses it there.

    ``earlier`` is a folder with the files of a release before, whose Debian package is upgraded; if it is None, that is
    done with the package of this one by a lower number. Raises ReleaseError with what it said there, also if this
    machine cannot do that.
    """
    if why := lacking():
        raise ReleaseError(why)
    target = SUITES[suite]
    ours = (
        f"soakwatch-*-wheelhouse-{target.tag}.tar.gz",
        f"soakwatch_*+{RELEASES[target.python]}_*.deb",
        "soakwatch-*-py3-none-any.whl",
    )
    files = [*(_only(out, pattern) for pattern in ours), tool("uv"), _IN_THE_BASE, _PAGE]
    base = _base(suite, bases)
    with tempfile.TemporaryDirectory(prefix="soakwatch-prove-") as name:
        system = Path(name) / suite
        system.mkdir()
        subprocess.run(["tar", "-xf", base, "-C", system], check=True)
        system.chmod(0o755)  # its root is for all of its users
        release = system / "release"
        release.mkdir()
        for file in files:
            shutil.copy2(file, release)
        if earlier is not None:
            shutil.copy2(_only(earlier, ours[1]), release / "older.deb")
        print(f"{suite}: a bare Debian with {_PACKAGES}, no network", flush=True)
        bare = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
        bare["DEBIAN_FRONTEND"] = "noninteractive"
        done = subprocess.run([*_ISOLATED, "sh", "-c", _ENTER, system, *ways], env=bare, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"{suite}: the installation above failed (code {done.returncode})")


def test_sdist(out: Path) -> None:
    """Runs the fast tests of the sdist in ``out``, with the versions of its constraints. Raises ReleaseError."""
    sdist, constraints = _only(out, "soakwatch-[0-9]*.tar.gz", without="wheelhouse"), _only(out, CONSTRAINTS)
    with tempfile.TemporaryDirectory(prefix="soakwatch-sdist-") as name:
        subprocess.run(["tar", "-xf", sdist, "-C", name], check=True)
        tree = Path(name) / sdist.name.removesuffix(".tar.gz")
        environment = {**os.environ, "PIP_CONSTRAINT": str(constraints)}
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(["tests/run", "--fast"], cwd=tree, env=environment, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"the fast tests of {sdist.name} failed (code {done.returncode})")


def _base(suite: str, bases: Path) -> Path:
    """The archive of a bare system; made if there is none."""
    archive = bases / f"{suite}.tar"
    if not archive.exists():
        bases.mkdir(parents=True, exist_ok=True)
        print(f"{suite}: debootstrap makes a bare system, kept as {archive}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="soakwatch-base-") as name:
            command = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", suite, name]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ReleaseError(f"debootstrap {suite} failed: {(done.stdout + done.stderr).strip()[-500:]}")
            part = archive.with_suffix(".part")
            subprocess.run(["tar", "-cf", part, "-C", name, "."], check=True)
            part.rename(archive)
    return archive


def _only(out: Path, pattern: str, *, without: str = "\0") -> Path:
    """The one file of a release that a pattern finds. Raises ReleaseError for none."""
    found = sorted(file for file in out.glob(pattern) if without not in file.name)
    if not found:
        raise ReleaseError(f"there is no {pattern} in {out}: `deploy/release TAG` or --draft makes it")
    return found[-1]


def _found(program: str) -> bool:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None

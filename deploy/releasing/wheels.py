"""Wheels, sdists, constraints, wheelhouses and the SBOM."""

from __future__ import annotations

import gzip
import hashlib
import platform
import re
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from releasing.repacked import leave_out_tests
from releasing.source import ReleaseError, Source, run

EVERYTHING = "soakwatch[loads,pollers,executors,sinks,influxdb,export,archive,notify]"
"""What a wheelhouse can install."""
_FOR_PIPX = ("pip", "setuptools", "wheel")  # it makes an environment of these first, from the same folder
CONSTRAINTS, SUMS = "constraints.txt", "SHA256SUMS"
_OLDEST_PYTHON = "3.11"
_GLIBC = 28  # 2.28: Debian 10, RHEL 8; the newest that a wheel of a dependency asks for
_TARGET = re.compile(r"3\.\d+-(x86_64|aarch64)")
_OWN = re.compile(r"^soakwatch\b")


@dataclass(frozen=True, slots=True)
class Target:
    """A Python on a machine: ``3.13-x86_64``."""

    python: str
    machine: str

    @property
    def tag(self) -> str:
        """Its name in file names.

        >>> Target("3.13", "x86_64").tag
        'cp313-linux_x86_64'
        """
        return f"cp{self.python.replace('.', '')}-linux_{self.machine}"

    @property
    def uv_platform(self) -> str:
        """By which uv resolves for it."""
        return f"{self.machine}-manylinux_2_{_GLIBC}"

    @property
    def pip_options(self) -> Sequence[str]:
        """By which pip takes wheels for it, whatever machine this is."""
        names = [f"manylinux_2_{minor}_{self.machine}" for minor in range(_GLIBC, 4, -1)]
        names += [f"manylinux{old}_{self.machine}" for old in ("2014", "2010", "1")]
        platforms = [word for name in names for word in ("--platform", name)]
        return ("--only-binary=:all:", "--implementation", "cp", "--python-version", self.python, *platforms)


def tool(name: str) -> Path:
    """A program of this environment (the dependency group ``release``)."""
    return Path(sys.executable).with_name(name)


def target_of(text: str) -> Target:
    """Raises ReleaseError for what is none."""
    if not _TARGET.fullmatch(text):
        raise ReleaseError(f"{text!r} is no target: write a Python and a machine, as 3.13-x86_64 or 3.13-aarch64")
    python, machine = text.split("-")
    return Target(python, machine)


def this_machine() -> Target:
    """The target that this process runs on."""
    return Target(f"{sys.version_info.major}.{sys.version_info.minor}", platform.machine())


def build_distributions(source: Source, out: Path) -> None:
    """Builds an sdist of each project, and of that its wheel. The backend is that of this environment."""
    for project in source.projects:
        run([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, project], source.environment)


def write_constraints(out: Path, given: Path | None) -> Path:
    """The newest version of each dependency that the ranges allow, for every Python; ``given`` are versions to keep."""
    found = _resolved(out, given, "--universal", "--python-version", _OLDEST_PYTHON)
    head = "# The versions that this release was tried with: pip install -c constraints.txt ./soakwatch-*.whl\n"
    file = out / CONSTRAINTS
    file.write_text(head + "".join(f"{line}\n" for line in found if not _OWN.match(line)), encoding="utf-8")
    return file


def fill_wheelhouse(target: Target, out: Path, folder: Path) -> None:
    """Puts all wheels that ``EVERYTHING`` needs on a target into ``folder``, by the constraints in ``out``."""
    folder.mkdir(parents=True)
    constraints = out / CONSTRAINTS
    options = ["--python-version", target.python, "--python-platform", target.uv_platform]
    pins = _resolved(out, constraints, *options)
    chosen = folder / CONSTRAINTS
    chosen.write_text("".join(f"{line}\n" for line in pins), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", *target.pip_options]
    run([*pip, "--find-links", out, "--dest", folder, "-r", chosen])
    leave_out_tests(folder)
    # For the authors of plug-ins; nothing asks for it, so its version is that of the release.
    for wheel in out.glob("soakwatch_testing-*.whl"):
        (folder / wheel.name).write_bytes(wheel.read_bytes())


def pack(folder: Path, file: Path, epoch: int) -> None:
    """A .tar.gz of a folder under the file's own name, the same bytes for the same files."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime, member.mode = epoch, 0o755 if member.isdir() else 0o644
        return member

    top = file.name.removesuffix(".tar.gz")
    with (
        file.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=1, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(folder.iterdir()):  # wheels are compressed already
            archive.add(path, f"{top}/{path.name}", recursive=False, filter=plain)


def write_sbom(source: Source, wheelhouse: Path, work: Path, file: Path) -> None:
    """CycloneDX (JSON) of an environment with all of a wheelhouse, which is one for this machine."""
    venv = work / "sbom"
    run([tool("uv"), "venv", "-q", "--python", sys.executable, venv])
    python = venv / "bin/python"
    offline: list[str | Path] = ["--no-index", "--offline", "--find-links", wheelhouse]
    run([tool("uv"), "pip", "install", "-q", "--python", python, *offline, EVERYTHING])
    options: list[str | Path] = [
        "--output-reproducible",
        "--pyproject",
        source.tree / "pyproject.toml",
        "--mc-type",
        "application",
    ]
    run([tool("cyclonedx-py"), "environment", *options, "--of", "JSON", "-o", file, python], source.environment)


def write_sums(out: Path) -> None:
    """The SHA-256 of every other file in ``out``, as ``sha256sum -c`` reads it."""
    lines = []
    for file in sorted(path for path in out.iterdir() if path.is_file() and path.name != SUMS):
        with file.open("rb") as opened:
            lines.append(f"{hashlib.file_digest(opened, 'sha256').hexdigest()}  {file.name}\n")
    (out / SUMS).write_text("".join(lines), encoding="utf-8")


def remove_release(out: Path) -> None:
    """Removes the files of the release in ``out``: those that its SHA256SUMS names, and nothing else."""
    sums = out / SUMS
    if sums.is_file():
        for line in sums.read_text(encoding="utf-8").splitlines():
            (out / Path(line.split("  ", 1)[-1]).name).unlink(missing_ok=True)
        sums.unlink()


def _resolved(out: Path, constraints: Path | None, *options: str) -> list[str]:
    """``name==version`` of everything, and where that depends on the Python or the machine its marker, one a line."""
    command: list[str | Path] = [tool("uv"), "pip", "compile", "-q", "--no-header", "--no-annotate", *options]
    command += ["--only-binary", ":all:", "--find-links", out, "--prerelease", "if-necessary-or-explicit"]
    command += ["-c", constraints] if constraints else []
    wanted = out / "wanted.in"
    wanted.write_text("".join(f"{name}\n" for name in (EVERYTHING, *_FOR_PIPX)), encoding="utf-8")
    try:
        return run([*command, wanted]).splitlines()
    finally:
        wanted.unlink()

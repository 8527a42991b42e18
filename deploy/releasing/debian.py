"""The Debian package: a Python environment of its own in /usr/lib/soakwatch, units, a user, folders.

It holds compiled wheels for one version of Python, so there is one package for each release of Debian.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

from releasing.source import Source, debian_version, run
from releasing.wheels import Target, tool

RELEASES: Mapping[str, str] = {"3.11": "deb12", "3.13": "deb13"}
"""The Debian whose python3 has this version."""
_CONTENT = "soakwatch[loads,pollers,executors,sinks,influxdb,notify]"  # without the extra export: half as much again
_COMMANDS: Mapping[str, str] = {"soakwatch": "soakwatch.cli.main", "soakwatch-agent": "soakwatch_agent.cli"}
_ARCHITECTURES: Mapping[str, str] = {"x86_64": "amd64", "aarch64": "arm64"}
_PROGRAM = "usr/lib/soakwatch"
_UNITS = "usr/lib/systemd/system"
_SYSTEMD: Mapping[str, str] = {
    **dict.fromkeys(("*.service", "*.timer", "*.socket", "*.target", "*.slice", "*.path"), _UNITS),
    "*.sysusers": "usr/lib/sysusers.d",
    "*.tmpfiles": "usr/lib/tmpfiles.d",
}
_COMPLETIONS: Mapping[str, str] = {
    "bash": "usr/share/bash-completion/completions/soakwatch",
    "zsh": "usr/share/zsh/vendor-completions/_soakwatch",
    "fish": "usr/share/fish/vendor_completions.d/soakwatch.fish",
}
_SETTINGS = ("etc/soakwatch/plans", "etc/soakwatch/agent")
_CONTROL = """\
Package: soakwatch
Version: {version}
Architecture: {architecture}
Maintainer: Soakwatch <soakwatch@localhost>
Installed-Size: {kib}
Depends: python3 (>= {python}), python3 (<< {next_python}), adduser
Suggests: ca-certificates, openssh-client, iputils-ping, ipmitool, iperf3
Section: net
Priority: optional
Description: {summary}
{text}
"""
_TEXT = (
    "Polls a device under test, overlays the load of its traffic generator, judges pass, fail or inconclusive, and"
    " reports the evidence. With the generators, sources and executors of all plug-ins; Parquet files and data frames"
    " need the wheelhouse of the same release."
)


def debian_name(source: Source, target: Target) -> str:
    """The file name of the package for a target; "" if no Debian has its Python."""
    if target.python not in RELEASES:
        return ""
    return f"soakwatch_{_version(source, target)}_{_ARCHITECTURES[target.machine]}.deb"


def build_debian(source: Source, target: Target, wheelhouse: Path, work: Path, out: Path) -> Path:
    """Builds the package of a target from its wheelhouse. Raises ReleaseError, also without dpkg-deb."""
    root = work / f"debian-{target.tag}"
    _lay_program(root, target, wheelhouse)
    _lay_units(root, source.tree / "deploy/systemd")
    lay_help(root, source)
    documents = root / "usr/share/doc/soakwatch"
    documents.mkdir(parents=True)
    shutil.copyfile(source.tree / "LICENSE", documents / "copyright")
    shutil.copytree(source.tree / "deploy/examples", documents / "examples")
    for name in _SETTINGS:
        (root / name).mkdir(parents=True)
    _lay_control(root, source, target)
    _plain_rights(root)
    file = out / debian_name(source, target)
    run(["dpkg-deb", "--root-owner-group", "-Zzstd", "--build", root, file], source.environment)
    return file


def _version(source: Source, target: Target) -> str:
    return f"{debian_version(source.version)}+{RELEASES[target.python]}"


def _lay_program(root: Path, target: Target, wheelhouse: Path) -> None:
    """The environment: what ``python3 -m venv`` and pip make, for a Python that this machine need not have."""
    program = root / _PROGRAM
    packages = program / f"lib/python{target.python}/site-packages"
    uv: list[str | Path] = [tool("uv"), "pip", "install", "-q", "--link-mode", "copy", "--target", packages]
    uv += ["--python-version", target.python, "--python-platform", target.uv_platform]
    run([*uv, "--no-index", "--offline", "--find-links", wheelhouse, _CONTENT])
    (packages / ".lock").unlink(missing_ok=True)
    for cache in packages.glob("*.dist-info/uv_cache.json"):  # the time at which it was made
        record = cache.with_name("RECORD")
        lines = record.read_text(encoding="utf-8").splitlines(keepends=True)
        record.write_text("".join(line for line in lines if "/uv_cache.json," not in line), encoding="utf-8")
        cache.unlink()
    shutil.rmtree(packages / "bin", ignore_errors=True)  # their first line names the Python of this machine
    (program / "bin").mkdir()
    (program / "bin/python3").symlink_to(f"/usr/bin/python{target.python}")
    home = f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {target.python}\n"
    (program / "pyvenv.cfg").write_text(home, encoding="utf-8")
    (root / "usr/bin").mkdir(parents=True)
    for name, module in _COMMANDS.items():
        start = f"#!/{_PROGRAM}/bin/python3\nimport sys\n\nfrom {module} import main\n\nsys.exit(main())\n"
        (program / "bin" / name).write_text(start, encoding="utf-8")
        (root / "usr/bin" / name).symlink_to(f"/{_PROGRAM}/bin/{name}")


def _lay_units(root: Path, folder: Path) -> None:
    """Units, and what systemd reads of the user and the folders; whatever stands in ``deploy/systemd``."""
    for pattern, place in _SYSTEMD.items():
        for file in sorted(folder.glob(pattern)):
            there = root / place
            there.mkdir(parents=True, exist_ok=True)
            own_folder = place != _UNITS
            shutil.copyfile(file, there / (f"{file.stem}.conf" if own_folder else file.name))


def lay_help(root: Path, source: Source) -> None:
    """Manual pages and completion by TAB, printed by the program of the commit with the libraries of this Python: those
    in the package may be of another."""
    code = [str(source.tree / folder) for folder in ("collector", "rules", "agent")]
    environment = {**source.environment, "PYTHONPATH": os.pathsep.join(code)}
    soakwatch = [sys.executable, "-m", "soakwatch.cli"]
    run([*soakwatch, "man", "--to", root / "usr/share/man/man1"], environment)
    for shell, place in _COMPLETIONS.items():
        file = root / place
        file.parent.mkdir(parents=True)
        file.write_text(run([*soakwatch, "completion", shell], environment), encoding="utf-8")


def _lay_control(root: Path, source: Source, target: Target) -> None:
    control = root / "DEBIAN"
    control.mkdir()
    for script in ("postinst", "prerm", "postrm"):
        shutil.copyfile(source.tree / "deploy/debian/maintainer", control / script)
        (control / script).chmod(0o755)
    major, minor = target.python.split(".")
    size = sum(file.lstat().st_size for file in root.rglob("*") if not file.is_dir())
    text = _CONTROL.format(
        version=_version(source, target),
        architecture=_ARCHITECTURES[target.machine],
        kib=size // 1024,
        python=target.python,
        next_python=f"{major}.{int(minor) + 1}",
        summary="long-duration soak and stability monitor for network devices",
        text=textwrap.indent(textwrap.fill(_TEXT, 78), " "),
    )
    (control / "control").write_text(text, encoding="utf-8")


def _plain_rights(root: Path) -> None:
    """Folders 0755, files 0644 and programs 0755, whatever made them."""
    for path in root.rglob("*"):
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100 or path.parent.name in {"bin", "DEBIAN"}
            path.chmod(0o755 if runs and path.name != "control" else 0o644)
    root.chmod(0o755)

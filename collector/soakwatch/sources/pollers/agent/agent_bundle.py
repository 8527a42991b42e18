"""The agent as one file: a zipapp with the agent and psutil inside, the same bytes for the same content."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import soakwatch_agent
import soakwatch_model
from soakwatch.core.errors import SoakwatchError

_SHEBANG = b"#!/usr/bin/env python3\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_FOREIGN = re.compile(r"psutil/_ps(windows|osx|bsd|sunos|aix)\.py$")
_TAG = re.compile(r"^Tag: (?P<python>\w+)-(?P<abi>\w+)-(?P<platform>\w+)\s*$", re.MULTILINE)
_MAX_WHEEL_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Psutil:
    """psutil for one kind of machine: its files, ``machine`` as uname says it, ``libc`` (glibc or musl)."""

    version: str
    machine: str
    libc: str
    files: Mapping[str, bytes]


def installed_psutil() -> Psutil:
    """The psutil installed here, for machines of this kind. Raises SoakwatchError if it is for one Python only."""
    distribution = metadata.distribution("psutil")
    names = [str(path) for path in distribution.files or () if _is_wanted(str(path))]
    files = {name: Path(str(distribution.locate_file(name))).read_bytes() for name in names}
    return _psutil(distribution.version, distribution.read_text("WHEEL") or "", files)


def psutil_of_wheel(path: Path) -> Psutil:
    """The psutil in a wheel file, for machines of another kind. Raises SoakwatchError."""
    try:
        with zipfile.ZipFile(path) as wheel:
            if sum(info.file_size for info in wheel.infolist()) > _MAX_WHEEL_BYTES:
                raise SoakwatchError(f"{path} is too large for a wheel of psutil")
            names = wheel.namelist()
            about = next((name for name in names if re.fullmatch(r"psutil-[^/]+\.dist-info/WHEEL", name)), None)
            if about is None:
                raise SoakwatchError(f"{path} is not a wheel of psutil: get one with pip download psutil --platform …")
            files = {name: wheel.read(name) for name in names if _is_wanted(name)}
            version = about.split("-")[1].removesuffix(".dist")
            return _psutil(version, wheel.read(about).decode("utf-8", "replace"), files)
    except (OSError, zipfile.BadZipFile):
        raise SoakwatchError(f"{path} cannot be read as a wheel: give a file psutil-….whl") from None


def _is_wanted(name: str) -> bool:
    return (
        name.startswith("psutil/")
        and name.endswith((".py", ".so"))
        and ".." not in name
        and "/tests/" not in name
        and not _FOREIGN.search(name)
    )


def _psutil(version: str, about: str, files: Mapping[str, bytes]) -> Psutil:
    tags = [(tag["python"], tag["abi"], tag["platform"]) for tag in _TAG.finditer(about)]
    linux = [tag for tag in tags if "linux" in tag[2]]
    if not linux or not any(name.endswith(".so") for name in files):
        raise SoakwatchError("this psutil is not for Linux: give one with --wheel psutil-…-manylinux….whl")
    if not any(abi == "abi3" for _, abi, _ in linux):
        raise SoakwatchError(
            f"this psutil works with one version of Python only ({linux[0][0]}): give one for all with --wheel "
            "psutil-…-abi3-manylinux….whl"
        )
    last = linux[-1][2]
    machine = re.sub(r"^(many|musl)?linux(_\d+_\d+|\d+)?_", "", last)
    return Psutil(version, machine, "musl" if last.startswith("musl") else "glibc", files)


def bundle(psutil: Psutil) -> bytes:
    """The zipapp. It runs with any CPython from 3.9 on, on the kind of machine that its psutil was built for."""
    folders = (Path(soakwatch_agent.__file__).parent, Path(soakwatch_model.__file__).parent)
    files = {
        path.relative_to(folder.parent).as_posix(): path.read_bytes()
        for folder in folders
        for path in folder.rglob("*.py")
        if "__pycache__" not in path.parts
    }
    files["__main__.py"] = files["soakwatch_agent/bundled_main.py"]
    packed_digests = {name: hashlib.sha256(data).hexdigest() for name, data in psutil.files.items()}
    manifest = {"machine": psutil.machine, "libc": psutil.libc, "psutil": psutil.version, "files": packed_digests}
    files["bundle.json"] = json.dumps(manifest, sort_keys=True).encode()
    files |= {f"_beside/{name}": data for name, data in psutil.files.items()}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o600 << 16
            archive.writestr(info, files[name])
    return _SHEBANG + packed.getvalue()


def write_bundle(data: bytes, path: Path) -> None:
    """Writes a bundle, whole or not at all. Raises SoakwatchError."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_bytes(data)
        fresh.chmod(0o755)
        os.replace(fresh, path)  # noqa: PTH105
    except OSError as error:
        raise SoakwatchError(f"{path} cannot be written: {(error.strerror or 'no reason given').lower()}") from None


def fits(psutil: Psutil, machine: str, libc: str) -> None:
    """Raises SoakwatchError, with the remedy, if a host needs another psutil."""
    if psutil.machine != machine or psutil.libc != libc:
        raise SoakwatchError(
            f"the host is {machine} with {libc}, and this psutil is for {psutil.machine} with {psutil.libc}: get the "
            f"wheel (pip download psutil=={psutil.version} --no-deps --only-binary :all: --platform "
            f"{'musllinux_1_2' if libc == 'musl' else 'manylinux2014'}_{machine}) and give it with --wheel FILE"
        )

"""The ``__main__`` of the zipapp: unpacks psutil, whose compiled part cannot be imported from a zip, starts the agent.

The unpacked files lie in a private folder of this user, named by their digest and verified at each start.
"""

import hashlib
import json
import os
import platform
import shutil
import stat
import sys
import tempfile
import zipfile
from typing import Dict, List, Optional

Manifest = Dict[str, str]  # path to SHA-256


def _report(sentence: str) -> None:
    sys.stderr.write("soakwatch-agent: " + sentence + "\n")


def private(folder: str) -> bool:
    """Makes a folder; True if it is this user's and nobody else can write to it."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def whole(folder: str, files: Manifest) -> bool:
    """True if every file has the digest it was packed with."""
    try:
        for name, digest in files.items():
            with open(os.path.join(folder, name), "rb") as data:
                if hashlib.sha256(data.read()).hexdigest() != digest:
                    return False
    except OSError:
        return False
    return True


def unpack(archive: str, files: Manifest, bases: List[str]) -> Optional[str]:
    """The folder with the files, unpacked now if they are not there yet; None if no base folder can be used."""
    name = "psutil-" + hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]
    for base in bases:
        folder = os.path.join(base, name)
        if not private(base):
            continue
        if private(folder) and whole(folder, files):
            return folder
        try:
            fresh = tempfile.mkdtemp(prefix=name + ".", dir=base)
            with zipfile.ZipFile(archive) as packed:
                for path in files:
                    packed.extract("_beside/" + path, fresh)
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(os.path.join(fresh, "_beside"), folder)  # noqa: PTH104
            shutil.rmtree(fresh, ignore_errors=True)
        except OSError:
            pass  # disk full or not ours, or another agent unpacked first: the check below decides
        if whole(folder, files):
            return folder
    return None


def start() -> int:
    """Starts the agent; returns its exit code."""
    if sys.version_info < (3, 9):  # noqa: UP036 - the host's Python is not ours to choose
        _report("Python 3.9 or newer is needed, this is " + platform.python_version())
        return 2
    archive = os.path.abspath(sys.argv[0])  # noqa: PTH100
    with zipfile.ZipFile(archive) as packed:
        manifest = json.loads(packed.read("bundle.json").decode())
    sys.dont_write_bytecode = True
    if platform.machine() == manifest["machine"]:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
        bases = [
            os.path.join(os.path.dirname(archive), "lib"),  # noqa: PTH120
            os.path.join(cache, "soakwatch-agent"),
            os.path.join(tempfile.gettempdir(), f"soakwatch-agent-{os.geteuid()}"),
        ]
        folder = unpack(archive, manifest["files"], bases)
        if folder is None:
            _report(
                "cannot unpack psutil next to the bundle, in ~/.cache or in the temporary folder: make "
                "one of them writable"
            )
            return 2
        sys.path.insert(0, folder)
    try:
        import psutil  # noqa: F401
    except ImportError as error:
        here = f"{platform.machine()}, {platform.libc_ver()[0] or 'another libc'}"
        _report(
            f"psutil of this bundle is for {manifest['machine']} and glibc, this machine is {here} ({error}): "
            "build the bundle with --wheel FILE, or install psutil here"
        )
        return 2
    from soakwatch_agent.cli import main

    return main()


if __name__ == "__main__":
    sys.exit(start())

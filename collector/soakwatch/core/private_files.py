"""Files of a run are their owner's alone, whatever the umask, or shared for reading with one group that was named.

What a run records (command lines, syslog, captures of traffic, pages of devices) is not for every user of a machine.
A file that is written later is as open as the record that it lies beside, so nobody has to remember the group.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.suggest import hint

PRIVATE, SHARED = 0o600, 0o640
_PRIVATE_FOLDER, _SHARED_FOLDER = 0o700, 0o2750  # new files in a shared folder are the group's too
_GROUP_READS = stat.S_IRGRP


def state_folder() -> Path:
    """Where what Soakwatch keeps for this user lies: below XDG_STATE_HOME, else below ~/.local/state.

    Raises RuntimeError where the user has no home.
    """
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "soakwatch"


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner may enter, and those above it as usual; one that exists is left as it is.

    Raises OSError.
    """
    with suppress(FileExistsError):
        make_new_private_folder(folder)
        return
    folder.mkdir(exist_ok=True)  # raises where a file has the name


def make_new_private_folder(folder: Path) -> None:
    """The same for a folder that must not exist yet. Raises OSError, of which FileExistsError says that it does."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=_PRIVATE_FOLDER)
    folder.chmod(_PRIVATE_FOLDER)  # a umask may have taken rights of the owner


def open_private(file: Path, mode: int = PRIVATE, *, append: bool = False) -> BinaryIO:
    """Open a file for writing that has ``mode`` from the moment at which it exists. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_APPEND if append else 0)
    descriptor = os.open(file, flags, mode)
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
            os.fchmod(descriptor, mode)
        if not append:
            os.ftruncate(descriptor, 0)
        return open(descriptor, "ab" if append else "wb")
    except BaseException:
        os.close(descriptor)
        raise


def write_private(file: Path, data: str | bytes, mode: int = PRIVATE) -> None:
    """Write a file, which has ``mode`` from the moment at which it exists; what was in it is lost. Raises OSError."""
    with open_private(file, mode) as out:
        out.write(data.encode() if isinstance(data, str) else data)


def shared_mode(file: Path) -> int:
    """The mode of what is written beside ``file``: ``SHARED`` where its group may read it, else ``PRIVATE``."""
    with suppress(OSError):
        return SHARED if file.stat().st_mode & _GROUP_READS else PRIVATE
    return PRIVATE


def group_id(group: str) -> int:
    """The number of a group with which files may be shared.

    Raises SoakwatchError if there is none of that name, or if the user is no member of it.
    """
    try:
        number = grp.getgrnam(group).gr_gid
    except (KeyError, ValueError):  # ValueError: a null byte
        known = [entry.gr_name for entry in grp.getgrall()]
        raise SoakwatchError(f"there is no group {group!r} on this machine{hint(group, known)}") from None
    if os.geteuid() != 0 and number not in {os.getegid(), *os.getgroups()}:
        raise SoakwatchError(
            f"you are no member of the group {group!r}, so nothing can be shared with it: have yourself added to it"
            f" (`usermod -aG {group} {owner_name(os.geteuid())}`, then log in again), or name a group of `id -Gn`"
        )
    return number


def share(folder: Path, group: str) -> None:
    """Let a group read a folder and the files in it, now and later; what holds a lock or a token stays the owner's.

    Raises SoakwatchError if there is no such group, or if the folder is another's.
    """
    number = group_id(group)
    try:
        os.chown(folder, -1, number)
        folder.chmod(_SHARED_FOLDER)
        for file in folder.iterdir():
            if file.is_file() and not file.is_symlink() and not _is_key(file):
                os.chown(file, -1, number)
                file.chmod(SHARED)
    except OSError as error:
        raise SoakwatchError(
            f"{folder} cannot be shared with the group {group!r} ({error.strerror}): it must be yours"
        ) from None


def sharing_group(folder: Path) -> str:
    """The group that a folder was shared with by ``share``; "" where it is private, or the group has gone."""
    with suppress(OSError, KeyError):
        status = folder.stat()
        if stat.S_IMODE(status.st_mode) == _SHARED_FOLDER:
            return grp.getgrgid(status.st_gid).gr_name
    return ""


def mode_in(folder: Path) -> int:
    """The mode of what is written into a folder that Soakwatch made: ``SHARED`` if it was shared with a group."""
    return SHARED if sharing_group(folder) else PRIVATE


def owner_name(number: int) -> str:
    """The name of a user, or the number where it has none."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid {number}"


def private_to(folder: Path) -> str:
    """Who may read a folder, as words: ``root``, ``root and its group lab``. Raises OSError."""
    status = folder.stat()
    owner = owner_name(status.st_uid)
    if not status.st_mode & _GROUP_READS:
        return owner
    try:
        return f"{owner} and its group {grp.getgrgid(status.st_gid).gr_name}"
    except KeyError:
        return f"{owner} and its group {status.st_gid}"


def _is_key(file: Path) -> bool:
    return file.suffix in {".lock", ".token", ".url"}

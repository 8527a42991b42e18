"""Files of a run are readable by their owner only, whatever the umask, or by one named group.

What a run records (command lines, syslog, traffic captures, device pages) is not for every user of a machine. Files
written later get the mode of the record beside them.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.suggest import hint

PRIVATE, SHARED = 0o600, 0o640
_PRIVATE_FOLDER, _SHARED_FOLDER = 0o700, 0o2750  # setgid: new files in a shared folder get its group
_GROUP_READS = stat.S_IRGRP


def state_folder() -> Path:
    """The folder of Soakwatch's state of this user: in XDG_STATE_HOME, else in ~/.local/state.

    Raises RuntimeError if the user has no home.
    """
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "soakwatch"


def make_private_folder(folder: Path) -> None:
    """Makes a folder with mode 0700, and its parents with the usual mode; an existing one is left as it is.

    Raises OSError.
    """
    with suppress(FileExistsError):
        make_new_private_folder(folder)
        return
    folder.mkdir(exist_ok=True)  # raises where a file has the name


def make_new_private_folder(folder: Path) -> None:
    """The same for a folder that must not exist. Raises OSError (FileExistsError if it does)."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=_PRIVATE_FOLDER)
    folder.chmod(_PRIVATE_FOLDER)  # the umask may have removed the owner's rights


def open_private(file: Path, mode: int = PRIVATE, *, append: bool = False) -> BinaryIO:
    """Opens a file for writing, with ``mode`` from its creation on. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else 0)
    descriptor = os.open(file, flags, mode)
    try:
        limit_rights(descriptor, mode)
        if not append:
            os.ftruncate(descriptor, 0)
        return open(descriptor, "ab" if append else "wb")
    except BaseException:
        os.close(descriptor)
        raise


def limit_rights(descriptor: int, mode: int = PRIVATE) -> None:
    """Gives an open file its mode, whatever the umask made of it; nothing where a file has no such modes (Windows).

    Raises OSError.
    """
    if hasattr(os, "fchmod") and stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        os.fchmod(descriptor, mode)


def write_private(file: Path, data: str | bytes, mode: int = PRIVATE) -> None:
    """Replaces the content of a file, with ``mode`` from its creation on. Raises OSError."""
    with open_private(file, mode) as out:
        out.write(data.encode() if isinstance(data, str) else data)


def shared_mode(file: Path) -> int:
    """The mode for files beside ``file``: ``SHARED`` if its group may read it, else ``PRIVATE``."""
    with suppress(OSError):
        return SHARED if file.stat().st_mode & _GROUP_READS else PRIVATE
    return PRIVATE


def group_id(group: str) -> int:
    """The id of a group to share files with.

    Raises SoakwatchError if there is no such group, or the user is not a member.
    """
    try:
        import grp

        number = grp.getgrnam(group).gr_gid
    except ImportError:
        raise SoakwatchError("this system has no groups to share files with: leave the group out") from None
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
    """Makes a folder and its files, present and future, readable by a group; locks and tokens stay the owner's.

    Raises SoakwatchError if there is no such group, or the folder is another user's.
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
    """The group that ``share`` gave a folder to; "" if it is private or the group no longer exists."""
    with suppress(OSError, KeyError, ImportError):
        import grp

        status = folder.stat()
        if stat.S_IMODE(status.st_mode) == _SHARED_FOLDER:
            return grp.getgrgid(status.st_gid).gr_name
    return ""


def mode_in(folder: Path) -> int:
    """The mode for files in a folder that Soakwatch made: ``SHARED`` if it is shared with a group."""
    return SHARED if sharing_group(folder) else PRIVATE


def owner_name(number: int) -> str:
    """The name of a user, or ``uid N`` without one."""
    try:
        import pwd

        return pwd.getpwuid(number).pw_name
    except (KeyError, ImportError):  # ImportError: Windows
        return f"uid {number}"


def private_to(folder: Path) -> str:
    """Who may read a folder, in words: ``root``, ``root and its group lab``. Raises OSError."""
    status = folder.stat()
    owner = owner_name(status.st_uid)
    if not status.st_mode & _GROUP_READS:
        return owner
    try:
        import grp

        return f"{owner} and its group {grp.getgrgid(status.st_gid).gr_name}"
    except (KeyError, ImportError):
        return f"{owner} and its group {status.st_gid}"


def _is_key(file: Path) -> bool:
    return file.suffix in {".lock", ".token", ".url"}

"""What is released: the files of a commit, with their version and their time."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_VERSION_LINE = re.compile(r'^version = "([^"]+)"$', re.MULTILINE)
_LAST_LINES = 15


class ReleaseError(Exception):
    """Why there is no release, in one sentence."""


@dataclass(frozen=True, slots=True)
class Source:
    """An exported commit."""

    tree: Path
    version: str  # as of PEP 440
    commit: str
    epoch: int  # seconds: when the commit was made; the time of every file that is made of it

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables for what builds: the same bytes from the same commit."""
        return {**os.environ, "SOURCE_DATE_EPOCH": str(self.epoch), "PYTHONHASHSEED": "0"}

    @property
    def projects(self) -> Sequence[Path]:
        """The folders of all distributions: Soakwatch itself first, then its plug-ins by name."""
        return (self.tree, *sorted(file.parent for file in self.tree.glob("collector/plugins/*/pyproject.toml")))


def run(command: Sequence[str | Path], env: Mapping[str, str] | None = None, *, cwd: Path | None = None) -> str:
    """The standard output of a command. Raises ReleaseError with its last lines if it fails or is not installed."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError:
        raise ReleaseError(f"{words[0]} is not installed") from None
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_LAST_LINES:])
        raise ReleaseError(f"`{' '.join(words[:6])}` ended with code {done.returncode}:\n{said}")
    return done.stdout


def version_of(tree: Path) -> str:
    """The version in the pyproject.toml of a folder. Raises ReleaseError if there is none."""
    try:
        return str(tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise ReleaseError(f"pyproject.toml of the commit names no version ({error})") from None


def draft_version(version: str, commit: str) -> str:
    """The version of a draft: sorts before the release, and names its commit.

    >>> draft_version("0.1.0", "0123456789abcdef")
    '0.1.0.dev0+g012345678'
    """
    return f"{version}.dev0+g{commit[:9]}"


def debian_version(version: str) -> str:
    """The same version as Debian sorts it.

    >>> debian_version("0.2.0"), debian_version("0.2.0.dev0+g01234567"), debian_version("0.2.0rc1")
    ('0.2.0', '0.2.0~dev0+g01234567', '0.2.0~rc1')
    """
    return re.sub(r"\.?(dev|a|b|rc)(\d+)", r"~\1\2", version, count=1)


def export(root: Path, tag: str | None, tree: Path) -> Source:
    """Exports the commit of a tag, or of HEAD as a draft if ``tag`` is None, into the new folder ``tree``.

    Raises ReleaseError if there is no such tag, or its number is not the version of the commit.
    """
    if tag is None:
        commit = run(["git", "rev-parse", "HEAD"], cwd=root).strip()
    else:
        try:
            commit = run(["git", "rev-parse", "--verify", "--quiet", f"refs/tags/{tag}^{{commit}}"], cwd=root).strip()
        except ReleaseError:
            raise ReleaseError(
                f"there is no tag {tag!r} here: `git tag` lists them; --draft makes a draft of the commit that is"
                " checked out"
            ) from None
    tree.mkdir()
    run(["git", "archive", "-o", tree / "tree.tar", commit], cwd=root)
    run(["tar", "-xf", "tree.tar"], cwd=tree)
    (tree / "tree.tar").unlink()
    version = version_of(tree)
    if tag is not None and tag != f"v{version}":
        raise ReleaseError(
            f"the tag {tag} stands at version {version}: the tag of that version is v{version}"
            " (changes/README.md says how a version is raised)"
        )
    if tag is None:
        version = _mark_draft(tree, version, commit)
    return Source(tree, version, commit, int(run(["git", "log", "-1", "--format=%ct", commit], cwd=root)))


def _mark_draft(tree: Path, version: str, commit: str) -> str:
    """Writes the version of a draft into every pyproject.toml that has the release's; returns it."""
    draft = draft_version(version, commit)
    for file in (tree / "pyproject.toml", *tree.glob("collector/plugins/*/pyproject.toml")):
        text = file.read_text(encoding="utf-8")
        file.write_text(_VERSION_LINE.sub(f'version = "{draft}"', text, count=1), encoding="utf-8")
    return draft

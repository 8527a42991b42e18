"""Profiles from their folders: read one by one when asked for, with all they extend.

Choosing one needs the heads of all; a head is read without the rest of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path as FilePath
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from soakwatch.core.errors import PlanError
from soakwatch.core.regex import SHIPPED
from soakwatch.core.suggest import hint
from soakwatch.core.validation import problems as problems_of
from soakwatch.core.yaml import Document, Problem, parse, plan_error, read_text
from soakwatch.sources.platforms.platform import Platform
from soakwatch.sources.platforms.platform_section import PlatformShape, read_platform
from soakwatch.sources.profiles.compile import Checker
from soakwatch.sources.profiles.inherit import SEE_PROFILES, File, UnknownProfileError, assemble
from soakwatch.sources.profiles.profile_keys import HeadShape, ProfileShape
from soakwatch.sources.profiles.profile_model import Clause, Profile, ProfileHead

Shaped = TypeVar("Shaped", bound=BaseModel)
_HEAD = re.compile(r"(title|extends|select|rank)\s*:")
_CLI = re.compile(r"(title|cli)\s*:")
_OWN_CLI = re.compile(r"(?m)^cli:(?:\s|\{|#.*)*+(?!like\b)")
FALLBACK = "generic"
_NAMED = 4


@cache
def shipped() -> FilePath:
    """The folder of the profiles that come with Soakwatch."""
    return FilePath(str(resources.files("soakwatch.sources.profiles"))) / "data"


@dataclass(slots=True)
class Profiles(Mapping[str, Profile]):
    """The profiles of some folders, by name; a name in an earlier folder hides the same name in a later one.

    ``self[name]`` reads a profile and keeps it; it raises PlanError for an unknown name, with the nearest one, for a
    part, with profiles that have it, and for a file that cannot be used, with every problem and its place.
    """

    folders: tuple[FilePath, ...]
    _assembled: dict[str, Profile] = field(default_factory=dict)
    _files: dict[str, File] = field(default_factory=dict)

    def names(self, *, parts: bool = False) -> tuple[str, ...]:
        """The names, sorted; ``parts`` adds those that are only extended (``_name``)."""
        stems = {file.stem for folder in self.folders for file in folder.glob("*.yaml")}
        return tuple(sorted(name for name in stems if parts or not name.startswith("_")))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __getitem__(self, name: str) -> Profile:
        if name.startswith("_") and name in self.names(parts=True):
            raise PlanError(f"{name!r} is a part of profiles, not a profile{self._having(name)}")
        if name not in self._assembled:
            self._assembled[name] = assemble(name, self._read)
        return self._assembled[name]

    def part(self, name: str) -> Profile:
        """A part (``_name``) as if it were a profile, for those who write it."""
        return assemble(name, self._read)

    def platform(self, profile: Profile) -> Platform | None:
        """The command line of a profile, if it has one."""
        return None if profile.cli is None else self._read(profile.cli).platform

    def heads(self) -> tuple[ProfileHead, ...]:
        """What choosing needs, of every profile."""
        return tuple(_head(self._path(name), name) for name in self.names())

    def _having(self, part: str) -> str:
        """The tail of an error about a part: profiles that extend it, those with the most like name first."""
        try:
            having = [head.name for head in self.heads() if part in head.extends]
        except PlanError:  # another file is wrong, which does not matter here
            having = []
        if not having:
            return hint(part.lstrip("_"), self.names())
        near = get_close_matches(part.lstrip("_"), having, n=_NAMED, cutoff=0.3)
        named = list(dict.fromkeys((*near, *having)))[:_NAMED]
        return f": use one of those that extend it, such as {', '.join(named)}"

    def _path(self, name: str) -> FilePath:
        proper = re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}", name) is not None
        for folder in self.folders if proper else ():
            file = folder / f"{name}.yaml"
            if file.is_file():
                return file
        raise UnknownProfileError(f"{name[:80]!r}{hint(name[:80], self.names())}")

    def _read(self, name: str) -> File:
        if name not in self._files:
            self._files[name] = _file(self._path(name), name)
        return self._files[name]


def load_profiles(extra: FilePath | None = None) -> Profiles:
    """The shipped profiles, behind those of the folder ``extra`` if there is one."""
    if extra is not None and not extra.is_dir():
        raise PlanError(f"{extra}: there is no such folder of profiles")
    return Profiles((*((extra,) if extra is not None else ()), shipped()))


def read_file(file: FilePath, name: str) -> File:
    """One file, checked as far as it goes without its parents. Raises PlanError with every problem."""
    return read_document(_document(read_text(file), file.name), name, own=_own(file))


def read_document(document: Document, name: str, *, own: bool = False) -> File:
    """The same of a document; ``own``: it comes with Soakwatch, and its expressions may have all that Python has."""
    shape = _shape(document, ProfileShape, own=own)
    checker = Checker(document)
    groups = {
        key: None if group is None else checker.group(("snmp", "groups", key), key, group)
        for key, group in shape.snmp.groups.items()
    }
    platform, wrong = _platform(name, document, shape)
    if checker.problems or wrong:
        raise plan_error(document.origin, [*checker.problems, *wrong])
    return File(name, document, shape, groups, clauses(shape), platform)


def _platform(name: str, document: Document, shape: ProfileShape) -> tuple[Platform | None, list[Problem]]:
    """The command line that stands in a file, and what is wrong with it."""
    if shape.cli is None:
        return None, []
    like = shape.cli.like
    if like is None:
        return read_platform(name, shape.title or name, shape.cli, document, _shared)
    return None, [] if like in platform_names() else [document.problem(("cli", "like"), _no_cli(like))]


def head_of(file: FilePath, name: str) -> ProfileHead:
    """The head of a file: only its lines are parsed, so the hundred files take a fraction of a second."""
    words, own = read_text(file), _own(file)
    try:
        shape = _shape(_document(_only(_HEAD, words), file.name), HeadShape, own=own)
    except PlanError:  # it is wrong, or written so that its head cannot be read alone: the whole tells
        shape = _shape(_document(words, file.name), ProfileShape, own=own)
    return ProfileHead(name, shape.title or name, tuple(shape.extends), clauses(shape), shape.rank)


def _own(file: FilePath) -> bool:
    """Whether a file comes with Soakwatch."""
    return file.resolve().parent == shipped().resolve()


def _file(file: FilePath, name: str) -> File:
    """A file, and of those that are shipped the one that this process has read before."""
    return _shipped_file(name) if file.parent == shipped() else read_file(file, name)


def _head(file: FilePath, name: str) -> ProfileHead:
    return _shipped_head(name) if file.parent == shipped() else head_of(file, name)


# The shipped files do not change while a process runs, and a run with fifty devices would else parse the same fifteen
# of them, and a hundred heads, fifty times over.
@cache
def _shipped_file(name: str) -> File:
    return read_file(shipped() / f"{name}.yaml", name)


@cache
def _shipped_head(name: str) -> ProfileHead:
    return head_of(shipped() / f"{name}.yaml", name)


@cache
def platform_names() -> tuple[str, ...]:
    """The shipped profiles in whose files a command line stands, sorted: what ``os`` of the source ``ssh`` names."""
    return tuple(sorted(file.stem for file in shipped().glob("*.yaml") if _OWN_CLI.search(read_text(file))))


def require_os(name: str, also: tuple[str, ...] = ()) -> None:
    """Raises PlanError, with the nearest name, for a name that is neither one of ``platform_names`` nor in ``also``."""
    known = (*also, *platform_names())
    if name not in known:
        raise PlanError(f"there is no os {name!r}{hint(name, known)}{SEE_PROFILES}")


@cache
def platform(name: str) -> Platform:
    """The platform of one of ``platform_names``: of its file no more is read than that takes. Raises PlanError for
    another name, with the nearest."""
    require_os(name)
    document, shape = _shipped_cli(name)
    found, wrong = _platform(name, document, shape)
    if found is None or wrong:
        raise plan_error(document.origin, wrong)
    return found


@cache
def _shipped_cli(name: str) -> tuple[Document, ProfileShape]:
    document = _document(_only(_CLI, read_text(shipped() / f"{name}.yaml")), f"{name}.yaml")
    return document, _shape(document, ProfileShape, own=True)


def _shared(name: str) -> PlatformShape:
    """The command line of a shipped profile. Raises ValueError for a name that has none of its own."""
    shape = _shipped_cli(name)[1].cli if name in platform_names() else None
    if shape is None:
        raise ValueError(_no_cli(name))
    return shape


def _no_cli(name: str) -> str:
    return f"there is no profile {name!r} with a command line{hint(name, platform_names())}"


def _only(keys: re.Pattern[str], words: str) -> str:
    """The text with every line blank that belongs to no such key: lines keep their numbers."""
    kept, within = [], False
    for line in words.split("\n"):
        if line[:1] not in {"", " ", "#", "\t", "\r", "-", "}", "]"}:
            within = keys.match(line) is not None
        kept.append(line if within else "")
    return "\n".join(kept) if any(kept) else words


def _document(words: str, origin: str) -> Document:
    if not words.strip():
        raise PlanError(f"{origin}: is empty: a profile has at least a title")
    return parse(words, origin)


def _shape(document: Document, model: type[Shaped], *, own: bool) -> Shaped:
    try:
        return model.model_validate(document.data, context=SHIPPED if own else None)
    except ValidationError as error:
        raise plan_error(document.origin, problems_of(document, (), model, error)) from None


def clauses(shape: HeadShape) -> tuple[Clause, ...]:
    """The clauses of a head."""
    return tuple(
        Clause(
            tuple(clause.object_id or ()),
            clause.description,
            clause.not_description,
            clause.present,
            clause.text,
        )
        for clause in shape.select
    )

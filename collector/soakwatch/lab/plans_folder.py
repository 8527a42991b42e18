"""The plans that a lab server may run: files of one folder, and nothing outside of it."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from soakwatch.campaign.campaign_file import load_campaign
from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.core.suggest import hint
from soakwatch.core.yaml import parse, read_text
from soakwatch.lab.lab_model import TESTBED, Job, LabError, NotAllowedError, Order, Testbed, UnknownError
from soakwatch.plan import Plan, load_plan, plan_from_text
from soakwatch_model.roles import MONITOR

THIS_MACHINE = "this machine"
RUN, CAMPAIGN = "run", "campaign"
_SUFFIXES = frozenset({".yaml", ".yml"})
_REFERENCE = ".reference"
_MAX_BYTES = 2 * 2**20
_MAX_PLANS, _MAX_DEPTH = 2000, 6
_MAX_CELLS = 300  # of a campaign whose hosts are looked for
_LOOPBACK = frozenset({"localhost", "::1", ""})
_OPEN_KEYS = frozenset({"duration", "phases", "rules", "stop_on_fail", "name"})
_OPEN_LEAVES = frozenset({"interval", "timeout"})
_PLAIN_VALUE = re.compile(r"[\w .]*")


@dataclass(frozen=True, slots=True)
class Planned:
    """What a plan of the folder would run: ``kind`` (run, campaign), its name, what it occupies, how long it lasts
    (seconds), and a digest of its file."""

    file: Path
    kind: str
    name: str
    testbed: Testbed
    planned_s: float
    digest: str


def begun_plan(job: Job, plans: Path) -> Planned:
    """What a job runs that goes on with what was begun: the plan is in its record, whatever became of the file."""
    return Planned(plans / job.order.plan, job.kind, "", job.testbed, job.planned_s, job.digest)


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of the folder as a list shows it; ``trouble`` says why it cannot be run, "" if it can."""

    plan: str
    kind: str = ""
    name: str = ""
    testbed: str = ""
    planned_s: float | None = None
    trouble: str = ""


class PlansFolder:
    """The plans below a folder; each is named by its path there, such as ``fw/overload.yaml``.

    Raises LabError if there is no such folder.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise LabError(f"{folder} is not a folder: name the folder of plans with --plans DIR")
        self.path = folder.resolve()

    def file(self, name: str) -> Path:
        """The file of a plan. Raises UnknownError for a name outside of the folder, by ``..`` or by a link, or if
        there is none."""
        path = PurePosixPath(name)
        shown = name[:100] if name.isprintable() else "this"
        good = name.isprintable() and not path.is_absolute() and ".." not in path.parts and path.suffix in _SUFFIXES
        if not good or "\\" in name or any(part.startswith(".") for part in path.parts):
            raise UnknownError(
                f"{shown!r} cannot name a plan: write its path in the plans folder, such as fw/night.yaml"
            )
        try:
            file = (self.path / path).resolve(strict=True)
            status = file.stat()
        except (OSError, RuntimeError, ValueError):
            known = [plan for plan, _ in self._files()]
            raise UnknownError(f"there is no plan {shown!r} in the plans folder{hint(name, known)}") from None
        if not file.is_relative_to(self.path):
            raise UnknownError(
                f"the plan {shown!r} is a link that leads out of the plans folder: copy the file into it"
            )
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
            raise UnknownError(f"the plan {shown!r} is not a file of at most {_MAX_BYTES >> 20} MiB")
        return file

    def read(self, order: Order) -> Planned:
        """What an order would run. Raises PlanError with the place below the folder, UnknownError, LabError."""
        file = self.file(order.plan)
        try:
            return _read(file, order)
        except PlanError as error:
            raise PlanError(*(text.replace(f"{self.path}/", "") for text in error.problems)) from None

    def listed(self) -> list[Listed]:
        """Every plan and campaign of the folder, by name; those that cannot be run with the reason."""
        return [_listed(self, plan, mark) for plan, mark in self._files()]

    def _files(self) -> list[tuple[str, tuple[int, ...]]]:
        """Names, each with what changes when the file does."""
        found: list[tuple[str, tuple[int, ...]]] = []
        for path in _walk(self.path, _MAX_DEPTH):
            if path.suffix not in _SUFFIXES or Path(path.stem).suffix == _REFERENCE:
                continue
            try:
                status = path.stat()
            except OSError:
                continue
            mark = (status.st_ino, status.st_size, status.st_mtime_ns)
            found.append((path.relative_to(self.path).as_posix(), mark))
            if len(found) >= _MAX_PLANS:
                break
        return sorted(found)


def require_open(values: tuple[str, ...]) -> None:
    """Raises NotAllowedError for a change of a plan that only an admin may make.

    A source, hook or event may name a command or a host that gets a secret; an operator changes lengths, phases, rules
    and intervals.
    """
    for word in values:
        name, _, value = word.partition("=")
        path = name.split(".")
        if path[0] in _OPEN_KEYS:
            continue
        of_source = path[0] == "targets" and len(path) == 5 and path[2] == "sources" and path[-1] in _OPEN_LEAVES
        if of_source and _PLAIN_VALUE.fullmatch(value.strip()):
            continue
        shown = ".".join(path)[:80]
        raise NotAllowedError(
            f"--set {shown} needs the role admin: an operator may set {', '.join(sorted(_OPEN_KEYS))}, and interval and"
            " timeout of sources; put the rest into a plan"
        )


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth > 0:
                yield from _walk(Path(entry.path), depth - 1)
        else:
            yield Path(entry.path)


def _read(file: Path, order: Order) -> Planned:
    text = read_text(file)
    digest = hashlib.sha256(text.encode()).hexdigest()
    data = parse(text, str(file)).data
    label = order.labels.get(TESTBED)
    if isinstance(data, dict) and ("matrix" in data or "plan" in data):
        if order.values or set(order.labels) - {TESTBED}:
            raise LabError(f"{order.plan} is a campaign, which takes no --set and no --label: write them into its file")
        campaign = load_campaign(file)
        names = tuple(bed.name for bed in campaign.testbeds if bed.name)
        hosts: set[str] = set()
        for text_of_cell in list(dict.fromkeys(campaign.plans.values()))[:_MAX_CELLS]:
            hosts |= set(_hosts(plan_from_text(text_of_cell, str(file))))
        bed = Testbed((label,) if label else names, tuple(sorted(hosts)))
        runs = sum(campaign.seconds[cell.id] for cell in campaign.cells) * campaign.repeat.at_least
        return Planned(file, CAMPAIGN, campaign.name, bed, runs / max(1, len(names)), digest)
    plan = load_plan(file, values=order.values)
    if unknown := plan.unknown_names():
        raise PlanError(*unknown)
    own = next((each.text for each in plan.labels if each.name == TESTBED and each.text), "")
    named = label or own
    return Planned(file, RUN, plan.name, Testbed((named,) if named else (), _hosts(plan)), plan.duration_s, digest)


def _hosts(plan: Plan) -> tuple[str, ...]:
    """The hosts of a plan's targets, but for those that only watch; this machine if there are none."""
    found = {
        host
        for target in plan.targets
        if target.role != MONITOR
        for source in target.sources
        if (host := _host(source.poller, source.config.model_dump())) is not None
    }
    return tuple(sorted(found)) or (THIS_MACHINE,)


def _host(poller: str, config: Mapping[str, object]) -> str | None:
    """The host that a source polls; None where that is only a file or command of this machine."""
    if config.get("query"):
        return None  # a Prometheus that is asked for the series of others is no part of the testbed
    host, url = config.get("host"), config.get("url")
    if isinstance(host, str) and host:
        name = host.rpartition("@")[2]
    elif isinstance(url, str) and url:
        try:
            name = urlsplit(url).hostname or ""
        except ValueError:
            return None
    else:
        return THIS_MACHINE if poller == "local" else None
    name = name.lower()
    return THIS_MACHINE if name in _LOOPBACK or name.startswith("127.") else name


def _listed(folder: PlansFolder, plan: str, mark: tuple[int, ...]) -> Listed:
    return _listed_once(str(folder.path), plan, mark)


@functools.lru_cache(maxsize=_MAX_PLANS)
def _listed_once(folder: str, plan: str, _mark: tuple[int, ...]) -> Listed:
    try:
        planned = PlansFolder(Path(folder)).read(Order(plan))
    except SoakwatchError as error:
        return Listed(plan, trouble=str(error))
    return Listed(plan, planned.kind, planned.name, planned.testbed.words, planned.planned_s)

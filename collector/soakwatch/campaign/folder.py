"""The folder of a campaign, made with copies of what it was begun with or found to be of the same campaign; and the
names of the folders of its runs: short, of the values of the cell, never two alike."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from soakwatch.campaign import ledger as kinds
from soakwatch.campaign.campaign_file import CAMPAIGN_COPY, PLAN_COPY, REFERENCE_COPY, load_campaign
from soakwatch.campaign.campaign_keys import Campaign
from soakwatch.campaign.campaign_model import CampaignError, Cell
from soakwatch.campaign.ledger import LEDGER, Ledger, open_ledger, read_ledger
from soakwatch.core.private_files import make_private_folder, share, write_private

_MAX_NAME = 80
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9._]+")
CAMPAIGNS, RUNS = Path("campaigns"), "runs"


@contextmanager
def begun(campaign: Campaign, folder: Path, group: str = "") -> Iterator[Ledger]:
    """The ledger of a campaign that begins in a folder, which is its owner's and that ``group``'s.

    Raises CampaignError if a campaign was begun there before.
    """
    if (folder / LEDGER).is_file() and (entries := read_ledger(folder)):
        if entries[0].text("digest") != campaign.digest:
            name = entries[0].text("name")
            other = f"another campaign ({name})" if name != campaign.name else f"another version of {name}"
            raise CampaignError(f"{folder} is the folder of {other}: name another with --folder")
        raise CampaignError(
            f"{folder} already holds this campaign: continue it with soakwatch campaign resume {folder}"
        )
    if folder.is_dir() and any(path.name != LEDGER for path in folder.iterdir()):
        raise CampaignError(f"{folder} is not empty and is not a campaign folder: name another with --folder")
    make_private_folder(folder)
    make_private_folder(folder / RUNS)
    if campaign.base_text:
        write_private(folder / PLAN_COPY, campaign.base_text)
    if campaign.reference is not None:
        try:
            write_private(folder / REFERENCE_COPY, campaign.reference.read_bytes())
        except OSError as error:
            raise CampaignError(f"{campaign.reference}: cannot be read: {error.strerror}") from None
    write_private(folder / CAMPAIGN_COPY, campaign.file.read_bytes())
    with open_ledger(folder) as ledger:
        if group:
            share(folder, group)
            share(folder / RUNS, group)
        ledger.add(
            time.time_ns(),
            kinds.CAMPAIGN,
            version=kinds.VERSION,
            name=campaign.name,
            digest=campaign.digest,
            seconds=dict(campaign.seconds),
            cwd=str(Path.cwd()),
        )
        yield ledger


@contextmanager
def continued(folder: Path) -> Iterator[tuple[Campaign, Ledger]]:
    """The campaign of a folder, with its ledger. Raises CampaignError if it is none, or its copy was changed."""
    entries = read_ledger(folder)
    if not entries or entries[0].kind != kinds.CAMPAIGN:
        raise CampaignError(f"{folder}: its ledger does not begin with a campaign: it was never begun")
    campaign = load_campaign(folder / CAMPAIGN_COPY, begun=True)
    if entries[0].text("digest") != campaign.digest:
        raise CampaignError(
            f"{folder / CAMPAIGN_COPY} is another campaign than the one that was begun in {folder}: undo the change,"
            " or begin a new campaign in another folder"
        )
    with open_ledger(folder) as ledger:
        yield campaign, ledger


def campaigns_in(folder: Path) -> dict[str, Path]:
    """The folders of campaigns that belong to a folder, by name: it may hold campaigns, hold a folder ``campaigns``, be
    the folder of one, or hold the runs of one."""
    own = [folder, *([folder.parent] if folder.name == RUNS else [])]
    places = [place for place in own if (place / LEDGER).is_file()]
    for parent in (folder, folder / CAMPAIGNS.name):
        places += sorted(file.parent for file in parent.glob(f"*/{LEDGER}"))
    known = {place.absolute().name: place for place in reversed(places)}
    return dict(sorted(known.items()))


def name_in_campaign(folder: Path) -> str:
    """The name of a run's folder as pages have it: in the folder of a campaign with the campaign before a colon."""
    campaign = folder.parent.parent
    own = folder.parent.name == RUNS and (campaign / LEDGER).is_file()
    return f"{campaign.name}:{folder.name}" if own else folder.name


def folder_names(cells: Sequence[Cell]) -> dict[str, str]:
    """The name of each cell's folders, by its id, without repetition and attempt.

    >>> folder_names([Cell({"kind": "L4", "load": "20%"}), Cell({"kind": "L4", "load": "25%"})])
    {'kind=L4,load=20%': 'L4-20', 'kind=L4,load=25%': 'L4-25'}
    >>> sorted(folder_names([Cell({"a": "x y"}), Cell({"a": "x+y"})]).values())
    ['x-y-6ad7', 'x-y-dd12']
    """
    plain = {cell.id: _plain(cell) for cell in cells}
    often = Counter(name.lower() for name in plain.values())
    return {
        cell: name if name and often[name.lower()] == 1 else f"{name or 'cell'}-{sha256(cell.encode()).hexdigest()[:4]}"
        for cell, name in plain.items()
    }


def _plain(cell: Cell) -> str:
    name = "-".join(part for value in cell.values.values() if (part := _NOT_IN_NAME.sub("-", value).strip("-.")))
    return name[:_MAX_NAME].strip("-.")


def run_folder(cell_name: str, repetition: int, attempt: int) -> str:
    """The name of a run's folder.

    >>> run_folder("L4-64-20", 2, 1), run_folder("L4-64-20", 2, 2)
    ('L4-64-20-r2', 'L4-64-20-r2-a2')
    """
    return f"{cell_name}-r{repetition}" + (f"-a{attempt}" if attempt > 1 else "")

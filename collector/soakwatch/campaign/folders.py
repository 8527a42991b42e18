"""Campaigns below a folder, by name."""

from __future__ import annotations

from pathlib import Path

from soakwatch.campaign.ledger import LEDGER

RUNS, CAMPAIGNS = "runs", "campaigns"


def campaigns_in(folder: Path) -> dict[str, Path]:
    """The folders of campaigns that belong to a folder, by name: it may hold campaigns, hold a folder ``campaigns``, be
    the folder of one, or hold the runs of one."""
    own = [folder, *([folder.parent] if folder.name == RUNS else [])]
    places = [place for place in own if (place / LEDGER).is_file()]
    for parent in (folder, folder / CAMPAIGNS):
        places += sorted(file.parent for file in parent.glob(f"*/{LEDGER}"))
    known = {place.absolute().name: place for place in reversed(places)}
    return dict(sorted(known.items()))

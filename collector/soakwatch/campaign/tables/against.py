"""A campaign against an earlier one: each figure of each cell, corrected for how many they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from soakwatch.campaign.model import CampaignError, CampaignState
from soakwatch.campaign.tables.cells import CellData, Readings, cells_of
from soakwatch.campaign.tables.derived import with_derived
from soakwatch.campaign.tables.findings import CampaignFinding, Pair, cell_words, compared
from soakwatch.campaign.tables.spec import MARGIN, Measured, Per, TablesSpec
from soakwatch.core.formatting import quantity


@dataclass(frozen=True, slots=True)
class Earlier:
    """A campaign to compare with; ``names`` are what the new and the earlier one are called, ``margin`` is the change
    that counts as none."""

    state: CampaignState
    names: tuple[str, str]
    margin: float = MARGIN


def against(
    spec: TablesSpec, cells: Sequence[CellData], earlier: Earlier, readings: Readings
) -> tuple[CampaignFinding, ...]:
    """Every figure that both campaigns have in cells of the same values. Cells that only one of them has are not
    compared.

    Raises CampaignError if they have no cell in common.
    """
    theirs = with_derived(cells_of(earlier.state, spec.measured, readings), spec.figures)
    before = {data.cell.id: data.figures for data in theirs}
    shared = [data for data in cells if data.cell.id in before]
    if not shared:
        raise CampaignError(
            f"{earlier.state.folder} has no cell of this campaign (it has {next(iter(before), 'none')}, this one"
            f" {cells[0].cell.id if cells else 'none'}): compare campaigns whose matrix has the same axes and values"
        )
    names = [f.name for f in spec.figures if isinstance(f, Measured | Per) and f.name in spec.named]
    pairs = [
        Pair(cell_words(data.cell), name, data.figures[name], before[data.cell.id][name], *earlier.names)
        for data in shared
        for name in names
    ]
    return tuple(compared(pairs, earlier.margin, spec, asked_of(earlier)))


def asked_of(earlier: Earlier) -> str:
    """What is asked by such a comparison."""
    new, old = earlier.names
    return f"{new} against {old}, margin {quantity(earlier.margin, '1')}"


def campaign_names(new: CampaignState, earlier: CampaignState) -> tuple[str, str]:
    """What two campaigns are called in sentences: the label in which they differ (their release), else their names.

    >>> from pathlib import Path
    >>> old, now = (CampaignState("nat", Path(v), (), (), (), {"release": v}) for v in ("v2.2", "v2.3"))
    >>> campaign_names(now, old)
    ('v2.3', 'v2.2')
    """
    for label in ("release", *sorted({*new.labels, *earlier.labels})):
        one, other = new.labels.get(label), earlier.labels.get(label)
        if one and other and one != other:
            return one, other
    if new.name != earlier.name:
        return new.name, earlier.name
    return f"{new.folder}", f"{earlier.folder}"

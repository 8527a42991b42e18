"""The name of a run in a database, where all runs of a lab lie beside each other: never that of another run."""

from __future__ import annotations

from pathlib import Path

from soakwatch.campaign.folder import name_in_campaign
from soakwatch.record import RecordView
from soakwatch.runs.catalog import STAMP, stamp


def run_tag(record: Path) -> str:
    """The tag ``run`` of the lines of a record, which is given by its folder or its file. Raises RecordError.

    It is the name of the folder where that begins with the time of the start, as ``soakwatch run`` names it. Elsewhere
    the start stands before it, and the campaign: the runs of each campaign have the same names, and readings of two
    runs under one tag are a mixture that nobody can take apart. Two collectors that begin runs of one name in the same
    second are not told apart.
    """
    folder = (record.parent if record.is_file() else record).resolve()
    if STAMP.match(folder.name):
        return folder.name
    with RecordView.open(record) as view:
        start = view.meta("start_ns") or ""
    name = name_in_campaign(folder)
    return f"{stamp(int(start))}-{name}" if start.isdecimal() else name

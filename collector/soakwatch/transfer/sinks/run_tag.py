"""The name of a run in a database shared by all runs of a lab, so that no two runs have the same."""

from __future__ import annotations

from pathlib import Path

from soakwatch.campaign.folder import name_in_campaign
from soakwatch.record import RecordView
from soakwatch.runs.catalog import STAMP, stamp


def run_tag(record: Path) -> str:
    """The tag ``run`` of a record, given by its folder or file. Raises RecordError.

    The folder's name if it begins with the start time, as ``soakwatch run`` makes it. Otherwise start time and campaign
    are put before it, since the runs of all campaigns have the same names and two runs under one tag cannot be
    separated again. Runs of the same name started in the same second by two collectors are not told apart.
    """
    folder = (record.parent if record.is_file() else record).resolve()
    if STAMP.match(folder.name):
        return folder.name
    with RecordView.open(record) as view:
        start = view.meta("start_ns") or ""
    name = name_in_campaign(folder)
    return f"{stamp(int(start))}-{name}" if start.isdecimal() else name

"""The record: the one file of one run, and the only place where the parts of Soakwatch meet.

``Record`` writes it, one process at a time; ``RecordView`` reads it, any process at any time. Beside this package's own
names these modules are public, each for one kind of caller:

* ``reader``, ``writer``: the two classes and the errors; ``writer_lock``: whether a run is writing
* ``queue``: polls, events and files of a run on their way to the writer's thread
* ``bulk``: many polls at once, from tables and copies; ``merge``: joins the pieces of a series
* ``follow``: what is new since the last time, for live judging and sinks; ``backlog``: how far behind a sink is
* ``minutes``: what a series did in each minute, which compaction rolls up beside the blocks
* ``inventory``: how much is in a record; ``series_cache``: series for a page that reads them again and again
* ``external_events``: events from other processes; ``findings``: findings as texts; ``meta``: the keys of texts
* ``model``, ``source``: the types that the record returns, and what a report reads of it

Modules that begin with an underscore hold the file's format: tables and codec. No other package imports them or speaks
SQL (contracts of ``tests/run``).
"""

from soakwatch.record._artifacts import artifact_name
from soakwatch.record._files import SIDE_SUFFIXES, not_yours, record_file
from soakwatch.record._schema import RECORD_NAME, SCHEMA_VERSION
from soakwatch.record._sqlite_errors import RecordFullError
from soakwatch.record.findings import finding_from_json, finding_to_json
from soakwatch.record.model import Artifact, ArtifactEntry, Counts, SeriesKey, Source, StoredEvent, StoredFault
from soakwatch.record.reader import RecordView
from soakwatch.record.writer import Record, add_outside_event

__all__ = [
    "RECORD_NAME",
    "SCHEMA_VERSION",
    "SIDE_SUFFIXES",
    "Artifact",
    "ArtifactEntry",
    "Counts",
    "Record",
    "RecordFullError",
    "RecordView",
    "SeriesKey",
    "Source",
    "StoredEvent",
    "StoredFault",
    "add_outside_event",
    "artifact_name",
    "finding_from_json",
    "finding_to_json",
    "not_yours",
    "record_file",
]

"""The record: the one file of one run, and the only place where the parts of Soakwatch meet.

``Record`` writes it, one process at a time; ``RecordView`` reads it, any process at any time.
"""

from soakwatch.record.artifacts import artifact_name
from soakwatch.record.findings import finding_from_json, finding_to_json
from soakwatch.record.model import Artifact, ArtifactEntry, Counts, SeriesKey, Source, Span, StoredEvent, StoredFault
from soakwatch.record.reader import RecordView
from soakwatch.record.schema import RECORD_NAME, SCHEMA_VERSION
from soakwatch.record.trouble import RecordFullError
from soakwatch.record.writer import Record, add_outside_event

__all__ = [
    "RECORD_NAME",
    "SCHEMA_VERSION",
    "Artifact",
    "ArtifactEntry",
    "Counts",
    "Record",
    "RecordFullError",
    "RecordView",
    "SeriesKey",
    "Source",
    "Span",
    "StoredEvent",
    "StoredFault",
    "add_outside_event",
    "artifact_name",
    "finding_from_json",
    "finding_to_json",
]

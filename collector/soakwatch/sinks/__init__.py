"""Sinks: databases that are fed from the record by a cursor, beside the run and never in its way."""

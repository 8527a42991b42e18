"""Sinks: databases that are fed from the record, each by a process of its own that keeps a cursor and never delays the
run."""

"""What enters and leaves a record: tables and series that are imported, exports, and sinks while a run goes on."""

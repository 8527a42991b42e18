"""InfluxDB: what is written to it, and what is read back."""

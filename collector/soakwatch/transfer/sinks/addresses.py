"""The ``--help`` of databases, and whether a word is a database's address. Imports nothing slow."""

from __future__ import annotations

from collections.abc import Mapping

SCHEMES: Mapping[str, str] = {"influxdb": "http", "influxdbs": "https"}
HELP = """\
influxdb://HOST:8086/BUCKET?token=env:NAME (influxdbs:// or tls=1 for https; a token is never written into an address)
with run=NAME reads a run that a sink wrote, whole, and gives its verdict; without it the series of others: Telegraf's
cpu, mem, swap, net, disk, diskio, system, processes, procstat and snmp are recognised, --map maps other measurements
(MEASUREMENT.FIELD=METRIC[,LABEL={tag}][:UNIT], or a file: soakwatch import --help tells its form). from=, to= and host=
choose. What is missing between samples counts as missing, and so it does at the edges that from= and to= name."""
MAP_FILE = """\
A file of --map, by measurement:  app: [{fields: [heap_used], metric: process.memory.usage, unit: MB,
labels: {process: "{service}", instance: "{pid|=0}"}, where: {env: "prod*"}, target: "{host}"}]"""


def is_database(text: str) -> bool:
    """Whether this is a database's address rather than a run or a table.

    >>> is_database("influxdb://h/b"), is_database("influxdb.csv")
    (True, False)
    """
    return text.partition("://")[0].lower() in SCHEMES and "://" in text

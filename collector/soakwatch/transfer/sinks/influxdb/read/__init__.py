"""Reading back from InfluxDB: runs that a sink wrote, and series that Telegraf and others collected.

``address`` parses addresses, ``asking`` queries (InfluxQL, chunked), ``own_run`` and ``copied`` rebuild the record of a
run, ``mapping`` maps foreign fields to metrics, ``foreign`` and ``reading`` make series of them.
"""

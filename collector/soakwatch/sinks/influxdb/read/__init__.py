"""Reading back from InfluxDB: runs that a sink wrote there, and series that Telegraf and others collected.

``address`` understands where to read, ``asking`` asks (InfluxQL, in pieces), ``own_run`` and ``rebuilding`` make the
record of a run again, ``mapping`` says what foreign fields are, ``foreign`` and ``gathering`` make series of them.
"""

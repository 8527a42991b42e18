"""A record in other formats: CSV, Parquet, line protocol, and the plan and scripts to repeat the run.

``tables`` has what is in a record beside its readings, ``readings`` the readings; ``csv_files`` and ``parquet_files``
write both; ``line_protocol`` writes what a sink would; ``dataset`` puts the files of several runs together, ``staging``
sees to it that a file is there whole or not at all. ``plan_files`` is the plan with its scripts.
"""

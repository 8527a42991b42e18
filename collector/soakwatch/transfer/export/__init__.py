"""A record in other formats: CSV, Parquet, line protocol, and the plan with its scripts to repeat the run.

``readings`` are a record's readings, ``tables`` everything else; ``csv_files`` and ``parquet_files`` write both;
``line_protocol`` writes what a sink would; ``dataset`` arranges the files of several runs; ``staging`` makes files
appear complete or not at all; ``plan_files`` writes plan and scripts.
"""

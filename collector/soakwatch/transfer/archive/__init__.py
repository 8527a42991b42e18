"""An archive: the runs of many devices and nights as a folder of Parquet, and questions about them.

``tables`` says what its columns are; ``rows`` makes the rows of a run, ``staged`` writes them in a worker; ``adding``
puts runs in; ``state`` is the list of its files, and what is damaged; ``_database`` is DuckDB, the only module that
speaks SQL here; ``questions`` are the ready ones, one file of SQL each in the folder ``questions``.
"""

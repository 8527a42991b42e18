"""Anybody's series as a record: tables in long and wide form, with their times, units and names understood or refused.

``table`` opens and cuts, ``times``, ``cells`` and ``units`` read, ``names`` says what a column is, ``gather`` and
``settle`` make series of it, ``pace`` finds which readings are missing, ``write`` makes the record.
"""

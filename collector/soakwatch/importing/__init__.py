"""Imports tables of samples, long or wide, as a record; times, units and names that are unclear are refused.

``sources.tables`` opens a file, cuts it into cells and reads them; ``gather`` collects the samples of each column,
``build_series`` gives them names and units, ``cadence`` finds which are missing, ``write`` writes the record.
"""

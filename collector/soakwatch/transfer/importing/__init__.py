"""Imports tables of samples, long or wide, as a record; unclear times, units and names are refused.

``sources.tables`` opens a file and splits it into cells; ``gather`` collects the samples of each column,
``build_series`` gives them names and units, ``cadence`` finds missing ones, ``write`` writes the record.
"""

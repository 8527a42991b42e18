"""Parsers: text of one command in, ``Parsed`` out; no state, no exception."""

"""Rulings: what is decided about findings after the rules wrote them. One ruling a file, applied as ``order.py``
says."""

"""What others decide about findings after their rules wrote them: one ruling a file, in the order of ``order.py``."""

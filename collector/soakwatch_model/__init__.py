"""The vocabulary: sample, poll, event, metric, series, case, finding. It imports nothing of ours; all others import it.

Standard library only, but for ``series`` and what holds series, which are arrays of numpy: the agent does without them.
"""

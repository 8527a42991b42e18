"""The shared vocabulary: sample, poll, event, metric, series, case, finding. It imports nothing of ours.

Standard library only, except ``series`` and what holds series, which need numpy: the agent does not use these.
"""

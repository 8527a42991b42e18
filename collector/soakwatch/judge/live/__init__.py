"""The live judge: a process that follows a run, keeps what judging needs, and reports its findings so far.

Of each series that a rule reads it keeps the last hour of samples, means of one minute since the start, and every
change; of each source its account by phase. An evaluation costs what is new in the minute, not the length of the run.
Its findings concern the run so far: the verdict is made from the record when the run has ended.
"""

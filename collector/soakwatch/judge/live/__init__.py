"""The live judge: a process that follows a run, keeps what judging needs of it, and says what it finds so far.

It keeps, of each series that a rule reads, the last hour as it was read, means of one minute since the begin, and every
change; of each source its account by phase. A look at the run costs what is new in the minute, not what the run has
been. What it says is a look at the run so far: the verdict is made from the record when the run has ended.
"""

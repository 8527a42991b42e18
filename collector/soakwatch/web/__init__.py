"""The web of Soakwatch: what a run, or ``soakwatch serve``, answers over HTTP; on loopback unless told otherwise."""

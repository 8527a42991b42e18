"""Words for the sentences of findings: numbers, times, shapes."""

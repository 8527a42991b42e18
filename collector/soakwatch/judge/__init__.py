"""From a record to a verdict: cases, rules, findings."""

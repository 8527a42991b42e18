"""The capacity search: the controller (MLRsearch), the trials, and the count of what they lost."""

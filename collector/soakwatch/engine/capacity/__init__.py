"""The search for the capacity: the controller (MLRsearch), the trials, and the account of what they lost."""

"""The commands of ``soakwatch token``, one a file, each with a click command called ``command``."""

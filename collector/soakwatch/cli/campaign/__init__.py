"""The commands of ``soakwatch campaign``, one a file, each with a click command called ``command``."""

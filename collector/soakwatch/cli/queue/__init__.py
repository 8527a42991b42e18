"""The commands of ``soakwatch queue``, one a file, each with a click command called ``command``."""

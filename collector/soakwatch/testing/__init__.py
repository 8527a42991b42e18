"""Doubles and small real services for tests and demos; they speak the real protocol on a socket."""

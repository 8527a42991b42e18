"""Doubles that speak the real protocol on a socket, signals of known truth, nights in virtual time, checks of rules."""

"""Devices over SSH: one verified, kept connection a device, and what is asked over it."""

"""The rules of Soakwatch: arrays in, findings out. numpy and scipy only; no clock, no I/O, no configuration."""

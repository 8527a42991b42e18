"""The topics of a machine's fingerprint. Standard library only; nothing on the machine is changed."""

"""Where work is done: processes of this machine, or what a plug-in knows."""

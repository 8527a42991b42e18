"""Executors of jobs: processes of this machine, or what a plug-in adds."""

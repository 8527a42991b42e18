"""Soakwatch inside other test tools: pytest, Robot Framework, and programs that attach to a run."""

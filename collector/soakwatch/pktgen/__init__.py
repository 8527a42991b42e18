"""Pktgen-DPDK: its Lua port, the text that it answers with, and the figures in it."""

"""iperf3 as a load: what it writes (JSON lines, JSON documents, text), and how it is started, driven and ended."""

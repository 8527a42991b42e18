"""How sources reach a device: SSH, SNMP, HTTP, TLS, and the command lines of network devices."""

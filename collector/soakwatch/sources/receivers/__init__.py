"""What devices send of their own accord: SNMP notifications and log lines, received, read, and bounded in storms."""

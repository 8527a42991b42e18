"""What devices send by themselves, SNMP notifications and syslog: received, parsed, and limited in storms."""

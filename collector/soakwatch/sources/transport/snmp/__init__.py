"""SNMP transport: sessions over gufo-snmp or pysnmp, what goes wrong on the way, the clocks and parts of the device.

Nothing here knows metrics and polls; ``pollers/snmp.py`` asks what a profile wants, when it is due.
"""

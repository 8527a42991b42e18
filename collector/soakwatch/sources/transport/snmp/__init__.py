"""SNMP transport: sessions over gufo-snmp or pysnmp, what goes wrong on the way, the device's clocks.

Nothing here knows profiles or metrics; ``pollers/snmp.py`` puts both together.
"""

"""What all other parts use: errors, units, time, text, secrets, the registry of plug-ins."""

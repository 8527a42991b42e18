"""The agent: polls the machine it runs on with psutil and the standard library, Python >= 3.9."""

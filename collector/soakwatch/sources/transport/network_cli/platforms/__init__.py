"""One system a file: how its command line talks, and which commands are asked and how they are read.

A module holds ``PLATFORM``; what lies here is known, by its file's name, to plans (``os:``) and profiles (``cli:``).
"""

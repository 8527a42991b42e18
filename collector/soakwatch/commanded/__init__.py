"""The parts of the load ``command``: the process, its last words, and the lines that it prints."""

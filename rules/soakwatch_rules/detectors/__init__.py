"""One rule a file; module ``memory_growth`` holds the class ``MemoryGrowth``. The directory is the registry."""

"""What is asked of a process's runtime: a file each, by the ``Runtime`` that allocates its memory."""

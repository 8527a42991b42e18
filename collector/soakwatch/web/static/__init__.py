"""Scripts and styles of the pages, served as they are."""

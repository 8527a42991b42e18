"""The fire drill on a finished record: known faults are added to what it read, and the copy is judged again."""

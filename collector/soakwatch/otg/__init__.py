"""Open Traffic Generator: its REST interface, its metrics, and its rates."""

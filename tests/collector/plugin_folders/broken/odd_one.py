"""A module without the class that its name promises."""

"""The commands of ``soakwatch archive``, a file each."""

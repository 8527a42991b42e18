"""Programs of a Linux device that are asked where it has them: one file each, chosen once when it is connected."""

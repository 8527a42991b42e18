"""The fire drill on a device: faults that the plan allows, limited in time, undone by the device itself."""

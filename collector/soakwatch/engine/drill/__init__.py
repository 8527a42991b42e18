"""The fire drill on a device: faults that the plan allows, bounded in time, undone by the device itself."""

"""Facts from vendors' headers, as tables, for drivers of a device and for the emulators that stand in for it."""

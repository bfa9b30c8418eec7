"""What vendors' headers say, as tables: read by who drives a device and by the emulator that stands for it."""

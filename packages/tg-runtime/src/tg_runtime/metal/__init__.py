"""Metal through the Objective-C runtime: messages, memory, queue, programs, graphs. The device is ``devices.metal``."""

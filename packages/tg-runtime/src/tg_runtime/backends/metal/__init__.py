"""Metal through the Objective-C runtime: messages, memory, queue, programs, graphs."""

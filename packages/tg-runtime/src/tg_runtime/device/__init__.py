"""What a device is: its facts, allocator, compilers, programs and limits; and the registry that opens it by name."""

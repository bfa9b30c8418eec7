"""What executes one step of a schedule on buffers: the base of all runners, and those of steps that are no kernels."""

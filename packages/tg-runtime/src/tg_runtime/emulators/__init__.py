"""Stand-ins for what a machine lacks: PTX on the host, a CUDA driver, QEMU for other processors."""

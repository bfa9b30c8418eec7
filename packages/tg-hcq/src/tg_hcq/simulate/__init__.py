"""Software GPUs: what executes a GPU's machine code without the GPU. Nothing here imports a driver."""

"""CUDA: the driver API by ctypes, its memory, programs and graphs, the compilers, and a driver that is a mock."""

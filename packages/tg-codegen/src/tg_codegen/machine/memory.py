"""What of memory is counted by planners and by whoever emits or renders an access: both have to count alike."""

STRIDES = 4
"""Elements so far apart are read as the vectors in which they lie."""
CHANNELS = 4
"""Elements of a texel: an image is read and written so many at a time."""
INTERLEAVED_BYTES = 16
"""Within so many bytes one instruction interleaves two vectors, however wide they are: *Intel 64 and IA-32
Architectures Software Developer's Manual*, VUNPCKLPS; on AArch64 a register of NEON, ZIP1."""
STREAM_ALIGNMENT = 64
"""Bytes at whose multiples a buffer has to begin for stores past the caches: the line of most caches, and the widest
vector that there is, AVX-512's."""
PAGE_BYTES = 4096
"""The smallest page of x86-64, AArch64 and RISC-V, and so the guard behind a thread's stack (``mmap(2)``)."""

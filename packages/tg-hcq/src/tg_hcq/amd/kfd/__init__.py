"""KFD, the kernel's interface for compute on AMD's cards: the process, topology, memory, queues, events."""

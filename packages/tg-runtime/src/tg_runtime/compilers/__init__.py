"""Compilers for the host's processor and its relatives: LLVM in process, clang and gcc on the PATH."""

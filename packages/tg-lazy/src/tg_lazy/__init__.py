"""The op table, the lazy graph and the scheduler that fuses it into kernels."""

"""Which nodes of a subgraph share a kernel: a subgraph goes in, and one step for each realised node comes out."""

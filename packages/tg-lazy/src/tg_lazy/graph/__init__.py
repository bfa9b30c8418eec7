"""The lazy graph: nodes that say what to compute, the memory that some of them own, and the user's line behind each."""

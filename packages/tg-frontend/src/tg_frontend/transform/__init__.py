"""Functions of functions: loops over tensors whose body is compiled once."""

"""Functions of functions: derivatives, many values at once, and loops whose body is compiled once."""

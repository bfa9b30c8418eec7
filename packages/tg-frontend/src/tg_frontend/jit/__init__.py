"""TinyJit: the kernels of a function, recorded once and replayed on new inputs."""

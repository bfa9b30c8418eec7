"""Fuzzers: each module has ``run(seed, seconds)``, which returns what goes wrong. See :mod:`tests.fuzz.__main__`."""

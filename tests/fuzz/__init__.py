"""Fuzzers: each module has ``attempt(seed)``, which returns what goes wrong. See :mod:`tests.fuzz.__main__`."""

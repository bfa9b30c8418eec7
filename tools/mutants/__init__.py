"""Mutants: small semantic changes planted in the layers, each against the tests that cover it.

    python -m tools.mutants cover                        # once: which test runs which line, over the whole suite
    python -m tools.mutants run tg_shape --count 50      # plants changes drawn by a seed, prints those that survive
    python -m tools.mutants known                        # plants the changes that once survived

A change that no test notices is either harmless, which a person must judge and write into ``harmless.toml``, or the
place of a bug that nobody would see.
"""

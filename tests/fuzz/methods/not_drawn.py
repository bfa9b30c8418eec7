"""The methods that no program of the fuzzer calls, and which test asks them instead."""

from __future__ import annotations

NOT_DRAWN: dict[str, tuple[str, str]] = {
    "say what a tensor is, and compute nothing": (
        "packages/tg-frontend/tests/test_facts.py",
        "dtype element_size itemsize nbytes ndim numel shape size dim nelement stride storage_offset is_contiguous "
        "is_same_size is_signed is_nonzero get_device device is_cuda is_cpu is_meta is_mps is_nested is_quantized "
        "is_floating_point is_complex is_conj is_neg type",
    ),
    "give the numbers themselves to Python: what every finding is compared by": (
        "packages/tg-frontend/tests/test_realization.py",
        "data item numpy tolist realize is_realized lazydata schedule schedule_with_vars replace",
    ),
    "record gradients, which programs have a part of their own for (gradients, graphs)": (
        "packages/tg-frontend/tests/test_facts.py",
        "requires_grad requires_grad_ is_leaf grad_fn retains_grad grad backward gradient detach",
    ),
    "call what is given to them when a gradient is there": (
        "packages/tg-frontend/tests/test_hooks.py",
        "register_hook retain_grad enable_grad set_grad_enabled no_grad",
    ),
    "call what is given to them when a gradient has been added": (
        "packages/tg-frontend/tests/test_names_of_others.py", "register_post_accumulate_grad_hook",
    ),
    "tell layers whether they are trained": ("packages/tg-frontend/tests/test_module.py", "train training"),
    "chain functions": ("packages/tg-frontend/tests/test_autograd.py", "sequential"),
    "compute by another dtype inside of a block": ("tests/test_autocast_lists.py", "autocast"),
    "move a tensor elsewhere": ("packages/tg-frontend/tests/test_transfers.py", "to"),
    "move a tensor by PyTorch's other names": (
        "packages/tg-frontend/tests/test_facts.py", "to_ cpu cuda to_device",
    ),
    "write to memory, which has a fuzzer of its own (memory)": (
        "packages/tg-frontend/tests/test_symbolic_writes.py", "assign fill_ zero_ copy_",
    ),
    "write to memory that a graph may follow, which has a fuzzer of its own (graphs)": (
        "packages/tg-frontend/tests/test_in_place.py", "detach_ fill_diagonal_",
    ),
    "take memory or bytes of others": (
        "packages/tg-frontend/tests/test_interchange.py", "from_blob from_dlpack",
    ),
    "fetch bytes": ("packages/tg-frontend/tests/test_files_as_tensors.py", "from_url"),
    "hash bytes: any error is another number": ("packages/tg-frontend/tests/test_hashing.py", "keccak hash"),
    "give memory with anything in it": (
        "packages/tg-frontend/tests/test_facts.py", "empty empty_like new_empty",
    ),
    "make a tensor like another one": (
        "packages/tg-frontend/tests/test_facts.py", "const_like new new_tensor scalar_tensor",
    ),
    "compare all of two tensors: what findings are compared by has no finding": (
        "packages/tg-frontend/tests/test_facts.py", "allclose equal",
    ),
    "ask how dtypes and shapes meet": (
        "packages/tg-frontend/tests/test_facts.py", "result_type broadcast_shapes",
    ),
    "set what random numbers are drawn from": (
        "packages/tg-frontend/tests/test_random.py", "manual_seed get_rng_state set_rng_state",
    ),
    "give another number in every dtype": ("packages/tg-frontend/tests/test_copies.py", "nextafter"),
    "make, take apart or turn complex numbers, which have a fuzzer of their own (complexes)": (
        "packages/tg-frontend/tests/test_complex.py",
        "complex polar real imag angle conj conj_physical resolve_conj sgn isreal cdouble cfloat view_as_real "
        "view_as_complex resolve_neg",
    ),
    "turn matrices": ("packages/tg-frontend/tests/test_facts.py", "T mT H mH"),
    "transform parts of a signal": ("packages/tg-frontend/tests/test_spectra.py", "stft istft"),
    "belong to gradients of few rows": (
        "packages/tg-frontend/tests/test_row_sparse.py",
        "coalesce indices is_coalesced is_sparse to_dense values",
    ),
    "count into bins, or by segments and positions of several axes": (
        "packages/tg-frontend/tests/test_names_of_others.py",
        "histogramdd segment_reduce unravel_index ravel_multi_index",
    ),
}  # fmt: skip
"""What methods do, as the end of a sentence: the test that asks each of them by its name, and their names."""

NOT_A_COMPUTATION = frozenset(name for _, names in NOT_DRAWN.values() for name in names.split())
"""All of them."""

RANDOM_TESTS: dict[str, str] = {
    "packages/tg-frontend/tests/test_random.py":
        "rand randn randint randperm rand_like randn_like multinomial dropout normal uniform glorot_uniform "
        "scaled_uniform kaiming_normal kaiming_uniform",
    "packages/tg-frontend/tests/test_facts.py": "randint_like",
    "packages/tg-frontend/tests/test_distributions.py":
        "exponential cauchy geometric log_normal exponential_ cauchy_ geometric_ log_normal_ normal_ uniform_ "
        "bernoulli_ random_",
    "packages/tg-frontend/tests/test_poisson.py": "poisson bernoulli",
    "packages/tg-frontend/tests/test_binomial.py": "binomial",
}  # fmt: skip
"""The methods that draw random numbers, by the tests of their distributions."""

RANDOM = frozenset(name for names in RANDOM_TESTS.values() for name in names.split())
"""All of them."""

"""Names of PyTorch's modules about layers that are not there: what is used here instead."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_QUANTISED = "weights of fewer bits are read from GGUF files: nn.state.gguf_load"
_ONE_DEVICE = "a model runs on one device; move it there with model.to()"
_LAYOUT = "there is one layout of memory"
_PIPES = "a data set is an object with items, or one that is gone through: nn.data.Dataset, IterableDataset"
_OWN = "a part of how PyTorch itself is written"
_DEVICES = "a model is moved with .to(device); nn.Module.cpu() and cuda() do that"
INSTEAD: dict[str, dict[str, str]] = {
    "nn": {
        "Container": "write nn.Module, or nn.Sequential for layers one after another",
        "DataParallel": _ONE_DEVICE,
        "LinearCrossEntropyOptions": "how LinearCrossEntropyLoss is cut into pieces is decided by the compiler",
        "attention": "it is functional.scaled_dot_product_attention",
        "common_types": "sizes are integers, or tuples of them",
        "factory_kwargs": "layers take device= and dtype=",
        "modules": "layers are in tinytg.nn itself",
        "parallel": _ONE_DEVICE,
        "parameter": "Parameter, Buffer and UninitializedParameter are in tinytg.nn itself",
        **dict.fromkeys(("intrinsic", "qat", "quantizable", "quantized"), _QUANTISED),
        **dict.fromkeys(
            [f"register_module_{what}_registration_hook" for what in ("buffer", "module", "parameter")],
            "nothing is registered: tensors and layers are attributes, which a __setattr__ of one's own sees",
        ),
    },
    "nn.grad": {},
    "nn.utils": {
        "clip_grad_norm": "it is clip_grad_norm_",
        **dict.fromkeys(("convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"), _LAYOUT),
    },
    "nn.utils.parametrizations": {},
    "nn.utils.parametrize": {},
    "nn.utils.prune": {},
    "nn.utils.stateless": {"NamedMemberAccessor": _OWN},
    "nn.utils.rnn": {"PackedSequence_": _OWN, "bind": _OWN},
    "nn.optim": {"swap_in_optimizer_params_and_state": _OWN},
    "nn.data": {
        "DistributedSampler": "one process sees the whole data set; nn.data.Subset(data, range(rank, len(data), count))"
        " is a share of it",
        **dict.fromkeys("DFIterDataPipe DataChunk IterDataPipe MapDataPipe functional_datapipe".split(), _PIPES),
        **dict.fromkeys(
            "argument_validation runtime_validation runtime_validation_disabled guaranteed_datapipes_determinism "
            "non_deterministic".split(), _PIPES,
        ),
    },
    "nn.amp": {
        **dict.fromkeys(("custom_fwd", "custom_bwd"), "what a tinytg.Function computes is not cast by autocast"),
        "is_autocast_available": "autocast is there on every device",
    },
    "nn.Module": {
        **dict.fromkeys(("ipu", "mtia", "xpu"), _DEVICES),
        "compile": "TinyJit records a function that calls the model",
        "share_memory": "tensors on the device SHM are in memory that processes share",
        **dict.fromkeys(("T_destination", "call_super_init", "dump_patches"), _OWN),
    },
    "nn.optim.Optimizer": dict.fromkeys(("OptimizerPreHook", "OptimizerPostHook", "profile_hook_step"), _OWN),
}
"""What is used instead of names, by the modules or classes that PyTorch has them in."""


def refused(place: str, name: str, said: str) -> NoReturn:
    """Says what is used instead of a name that is not there, where that is known.

    Raises:
      AttributeError: if the name is not there, for which this is called.

    Example:
      >>> refused("nn.utils", "clip_grad_norm", "no clip_grad_norm")
      Traceback (most recent call last):
      ...
      AttributeError: no clip_grad_norm: it is clip_grad_norm_
    """
    instead = INSTEAD[place].get(name)
    raise AttributeError(said if instead is None else f"{said}: {instead}", name=name)


def refusing(place: str) -> Callable[[str], NoReturn]:
    """A ``__getattr__`` for a module, that says what is used instead of a name."""

    def __getattr__(name: str) -> NoReturn:
        refused(place, name, f"module 'tinytg.{place}' has no attribute {name!r}")

    return __getattr__

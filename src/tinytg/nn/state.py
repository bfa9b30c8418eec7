"""Parameters and files of them; see :mod:`tg_frontend.nn.state`."""

from tg_frontend.nn.state import (
    StateError,
    get_parameters,
    get_state_dict,
    gguf_load,
    gguf_save,
    load_state_dict,
    safe_load,
    safe_load_metadata,
    safe_save,
    torch_load,
    torch_save,
)

__all__ = [
    "StateError", "get_parameters", "get_state_dict", "gguf_load", "gguf_save", "load_state_dict", "safe_load",
    "safe_load_metadata", "safe_save", "torch_load", "torch_save",
]  # fmt: skip

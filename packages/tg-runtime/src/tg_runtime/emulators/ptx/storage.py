"""Where the variables of a function lie: parameters, shared and local memory, globals of the module."""

from __future__ import annotations

from .convention import align_up, identifier, offsets
from .emitter import Emitter
from .errors import PTXUnsupported
from .syntax import Function, Module


class Storage:
    """The variables that a function can name.

    Addresses of shared and of local memory are offsets, as on the device; generic ones are the host's own.

    Attributes:
      params: the offsets of an entry's parameters.
      pointers: LLVM's names of parameters that are passed to and from functions.
      shared_bytes: of the shared memory that the function declares.
      local_bytes: of a thread's local memory.
    """

    def __init__(self, ir: Emitter, module: Module, function: Function) -> None:
        self.ir, self.module, self.function = ir, module, function
        self.params = offsets(function.params)[0] if function.entry else {}
        declared = [*module.variables.values(), *function.variables]
        fixed = [v for v in declared if v.space == "shared" and v.nbytes]
        self.places, self.shared_bytes = offsets(fixed)
        dynamic = align_up(self.shared_bytes, 16)
        self.places.update({v.name: dynamic for v in declared if v.space == "shared" and not v.nbytes})
        local, self.local_bytes = offsets([v for v in function.variables if v.space == "local"])
        self.places.update(local)
        self.pointers = {v.name: f"%{identifier(v.name)}" for v in function.variables if v.space == "param"}
        if not function.entry:
            self.pointers.update({v.name: f"%{identifier(v.name)}" for v in (*function.returns, *function.params)})

    def pointer(self, name: str, offset: int) -> str:
        """An LLVM pointer to a parameter, or into it; empty for what is none."""
        if name in self.pointers:
            return self.ir.emit(f"getelementptr i8, ptr {self.pointers[name]}, i64 {offset}")
        if name in self.params:
            return self.ir.emit(f"getelementptr i8, ptr %params, i64 {self.params[name] + offset}")
        return ""

    def address_of(self, name: str) -> str:
        """The address of a variable in its own space, as an i64.

        Raises:
          PTXUnsupported: if nothing of that name is declared.
        """
        if name in self.places:
            return str(self.places[name])
        if name in self.module.variables:
            return self.ir.emit(f"ptrtoint ptr @{identifier(name)} to i64")
        if name in self.params:
            return self.ir.emit(f"ptrtoint ptr {self.pointer(name, 0)} to i64")
        raise PTXUnsupported(f"PTX: {self.function.name}: {name} is not declared")

"""PTX without a GPU: a parser of its text, a translator to LLVM IR for the host, and what launches the result.

:class:`Program` takes a text and has its kernels; the modules below it can be used one by one.
"""

from .errors import PTXUnsupported
from .machine import Kernel, MisalignedAddress, Program
from .parser import PTXSyntaxError, parse

__all__ = ["Kernel", "MisalignedAddress", "PTXSyntaxError", "PTXUnsupported", "Program", "parse"]

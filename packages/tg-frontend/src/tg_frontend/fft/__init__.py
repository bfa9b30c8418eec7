"""Discrete Fourier transforms, by the names of PyTorch and numpy: ``tinytg.fft``.

Every length takes O(n log n). Numbers are of float32, float64, complex64 or complex128; narrower floats and integers
become float32. Gradients of any order are transforms. Every output depends on every input: an infinity or NaN among
them makes all outputs NaN.
"""

from ..keywords import offered
from .frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from .many import fft2, fftn, hfft2, hfftn, ifft2, ifftn, ihfft2, ihfftn, irfft2, irfftn, rfft2, rfftn
from .one import fft, hfft, ifft, ihfft, irfft, rfft

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

offered(globals(), __all__, "fft", dict.fromkeys(__all__, "any"))

"""A library, as workloads see it: arrays in and out, compilation, and the operations that the workloads are made of.

Each operation is the one call that a user of that library would write. Arguments and results are the library's own
tensors, hence untyped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from ..case import Array, Case, Unsupported

Tensor = Any
Params = dict[str, Tensor]
Loss = Callable[["Library", Params, Tensor, Tensor], Tensor]
Step = Callable[["Library", Params, list[Tensor], Tensor, Any], tuple[Tensor, list[Tensor]]]


@dataclass(frozen=True)
class Speech:
    """Something that is said, and a model of Whisper's kind, as an example runs it and in operations of any library.

    Attributes:
      program: the example.
      folder: of the model's files.
      samples: of the sound, 16,000 a second.
      encoder_weights: reads the encoder's, by name.
      decoder_weights: reads the decoder's.
      encode: (library, weights, bands) to what was heard.
      keys: (library, weights, what was heard) to keys and values of it for each layer of the decoder.
      step: (library, weights, caches, keys, token, position) to the scores of the next token; writes the caches.
    """

    program: ModuleType
    folder: Path
    samples: Array
    encoder_weights: Callable[[], dict[str, Array]]
    decoder_weights: Callable[[], dict[str, Array]]
    encode: Callable[[Library, Params, Tensor], Tensor]
    keys: Callable[[Library, Params, Tensor], Any]
    step: Callable[[Library, Params, list[Tensor], Any, Tensor, int], Tensor]


class Library(ABC):
    """One of the libraries.

    Attributes:
      name: what it is called in tables.
      mode: how :meth:`program` executes: ``eager``, ``jit`` or ``compiled``.
      version: of the installed library.

    Args:
      threads: how many threads it may use.
    """

    name: ClassVar[str]
    mode: str = "eager"
    version: str

    def __init__(self, threads: int) -> None:
        self.threads = threads

    # what a library must have

    @abstractmethod
    def array(self, values: Array, dtype: str = "") -> Tensor:
        """A tensor of ``values``, converted to ``dtype`` (``bfloat16``) if that is given."""

    @abstractmethod
    def host(self, x: Tensor) -> Array:
        """The values of a tensor."""

    @abstractmethod
    def program(self, fn: Callable[..., Tensor], arguments: Sequence[Tensor]) -> Callable[[], Tensor]:
        """``fn`` of ``arguments`` as a call that does the work and waits for it, compiled where the library can."""

    def case(self, fn: Callable[..., Tensor], arrays: Sequence[Array], dtype: str = "") -> Case:
        """A function of arrays as a case."""
        call = self.program(fn, [self.array(values, dtype) for values in arrays])
        return Case(call, self.host, self.mode)

    def reading(self, path: str, held: Sequence[int], more: Sequence[int], activations: str = "float32") -> Case:
        """A language model reads tokens, and says what it thinks of the next one. A run gives its logits.

        Args:
          path: its file.
          held: the tokens before, which are in its cache.
          more: those that are read.
          activations: as which dtype they are multiplied with weights.
        """
        raise Unsupported(f"{self.name} runs no language models from files")

    def loading(self, path: str, text: str) -> Case:
        """A language model and its tokenizer are loaded, ready to be asked for a token. A run gives a text's tokens.

        Args:
          path: the file.
          text: some text.
        """
        raise Unsupported(f"{self.name} runs no language models from files")

    def transcribing(self, speech: Speech) -> Case:
        """Sound becomes tokens, from samples on. A run gives them."""
        raise Unsupported(f"{self.name} transcribes nothing here")

    def training(
        self, loss: Loss, params: dict[str, Array], x: Array, y: Array, lr: float, clip: float = 0.0, decay: float = 0.0
    ) -> Case:
        """Steps of Adam on one batch. A run gives the loss.

        Args:
          loss: what is minimised.
          params: what is trained.
          x: the batch.
          y: what it should give.
          lr: learning rate.
          clip: the greatest norm of all gradients together, if not 0.
          decay: of weights, beside the gradient (AdamW).
        """
        raise Unsupported(f"{self.name} differentiates nothing")

    @property
    def transforms(self) -> Any:
        """The module of transforms of functions: grad, jvp, vmap, jacrev, hessian; all libraries call them alike."""
        raise Unsupported(f"{self.name} transforms no functions")

    def derived(self, fn: Callable[..., Tensor], arrays: Sequence[Array]) -> Case:
        """A function of arrays that takes derivatives of others."""
        return self.case(fn, arrays)

    def checkpoint(self, fn: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """``fn(x)``, whose inner results are computed again for its gradient."""
        raise Unsupported(f"{self.name} computes nothing again")

    def training_of_rows(self, table: Array, index: Array, lr: float, adam: bool) -> Case:
        """Steps on the rows of a table that a batch reads, whose gradient is row-sparse. A run gives the loss.

        Args:
          table: shape (rows, width).
          index: which rows are read.
          lr: learning rate.
          adam: whether the optimiser is Adam, that leaves other rows alone; else it is SGD.
        """
        raise Unsupported(f"{self.name} has no row-sparse gradients")

    def gradient(
        self, fn: Callable[..., Tensor], arrays: Sequence[Array], weights: Array, eager: bool = False
    ) -> Case:
        """The gradient of a function's weighted sum at its first argument.

        Args:
          fn: takes tensors of ``arrays``.
          arrays: the arguments.
          weights: of the function's results, in their shape.
          eager: outside of anything recorded or compiled.
        """
        raise Unsupported(f"{self.name} differentiates nothing")

    def decoding(
        self, step: Step, params: dict[str, Array], caches: Sequence[tuple[int, ...]], tokens: Sequence[int], start: int
    ) -> Case:
        """One token after the other. A run gives the output.

        Args:
          step: (library, params, caches, token, position) to the output and the caches.
          params: the weights.
          caches: shapes of the caches, which start as zeros.
          tokens: the token of each position.
          start: the first position; after the last token decoding starts there again.
        """
        raise Unsupported(f"{self.name} has no caches here")

    def tensors(self, run: Callable[[], None]) -> int:
        """Bytes that tensors took at most while ``run`` built and ran a workload, copies of its arrays included."""
        raise Unsupported(f"{self.name} does not tell")

    def chain(self, count: int, size: int) -> Case:
        """``count`` kernels, each adding 1 to ``size`` elements of the one before, recorded where the library can."""
        raise Unsupported(f"{self.name} has no such chain")

    def tiny(self) -> Case:
        """One addition of 16 elements, outside of anything recorded or compiled."""
        raise Unsupported(f"{self.name} has no eager execution")

    # operations

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """The matrix product."""
        return a @ b

    def integer_product(self, a: Tensor, b: Tensor) -> Tensor:
        """The product of two matrices of 8-bit integers, in 32 bits."""
        raise Unsupported(f"{self.name} has no product of narrow integers")

    def transposed(self, x: Tensor) -> Tensor:
        """The last two axes exchanged, as a view."""
        return x.T

    def materialized(self, x: Tensor) -> Tensor:
        """A view, in memory of its own."""
        raise Unsupported(f"{self.name} decides itself what is in memory")

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        """The same elements in another shape."""
        return x.reshape(*shape)

    def permute(self, x: Tensor, *order: int) -> Tensor:
        """The axes in another order."""
        return x.permute(*order)

    @abstractmethod
    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """x @ weight.T + bias, the weight being (outputs, inputs)."""

    @abstractmethod
    def conv2d(
        self, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0
    ) -> Tensor:
        """Convolution of (N, C, H, W) with (O, C, KH, KW)."""

    def conv1d(
        self, x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1, padding: int = 0
    ) -> Tensor:
        """Convolution of (N, C, L) with (O, C, K)."""
        raise Unsupported(f"{self.name} has no convolution along one axis here")

    def conv_transpose(
        self, x: Tensor, weight: Tensor, stride: int, padding: int = 0, extra: int = 0, groups: int = 1
    ) -> Tensor:
        """Transposed convolution of (N, C, *spatial) with (C, O / groups, *kernel), ``extra`` added at the end."""
        raise Unsupported(f"{self.name} has no transposed convolution")

    @abstractmethod
    def max_pool(self, x: Tensor, kernel: int, stride: int, padding: int = 0) -> Tensor:
        """The greatest of each window."""

    @abstractmethod
    def attention(self, q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        """softmax(q @ k.T / sqrt(width)) @ v; ``causal``: each position attends to itself and those before."""

    @abstractmethod
    def softmax(self, x: Tensor) -> Tensor:
        """Over the last axis."""

    @abstractmethod
    def layernorm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Over the last axis, eps 1e-5."""

    @abstractmethod
    def rmsnorm(self, x: Tensor, weight: Tensor) -> Tensor:
        """Over the last axis, eps 1e-5."""

    @abstractmethod
    def channel_norm(self, x: Tensor, mean: Tensor, var: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Batch normalisation as inference does it, with running statistics; eps 1e-5."""

    def batch_norm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Batch normalisation as training does it, with the statistics of the batch; eps 1e-5."""
        raise Unsupported(f"{self.name} trains nothing here")

    def cross_entropy(self, logits: Tensor, classes: Tensor) -> Tensor:
        """The mean loss of (N, C) logits and N classes."""
        raise Unsupported(f"{self.name} trains nothing here")

    @abstractmethod
    def relu(self, x: Tensor) -> Tensor:
        """max(x, 0)."""

    @abstractmethod
    def gelu(self, x: Tensor, exact: bool = False) -> Tensor:
        """The approximation through tanh, or exactly, through the error function."""

    @abstractmethod
    def sin(self, x: Tensor) -> Tensor:
        """The sine of radians."""

    @abstractmethod
    def cos(self, x: Tensor) -> Tensor:
        """The cosine of radians."""

    def tanh(self, x: Tensor) -> Tensor:
        """The hyperbolic tangent."""
        return x.tanh()

    @abstractmethod
    def erf(self, x: Tensor) -> Tensor:
        """The error function."""

    @abstractmethod
    def silu(self, x: Tensor) -> Tensor:
        """x * sigmoid(x)."""

    @abstractmethod
    def sum(self, x: Tensor) -> Tensor:
        """All elements."""

    @abstractmethod
    def mean(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        """Over axes, which go."""

    @abstractmethod
    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor, position: Any) -> Tensor:
        """Rotary embedding of (heads, 1, width) by row ``position`` of two tables; halves are pairs."""

    def cached_attention(
        self, q: Tensor, k: Tensor, v: Tensor, cache: Tensor, position: Any
    ) -> tuple[Tensor, Tensor]:
        """Writes k and v to a cache and attends to what it holds so far.

        Args:
          q: shape (heads, 1, width).
          k: shape (groups, 1, width).
          v: like ``k``.
          cache: shape (2, groups, positions, width).
          position: where this token goes.

        Returns:
          shape (heads, 1, width), and the cache.
        """
        raise Unsupported(f"{self.name} has no caches here")

    def fourier(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        """The discrete Fourier transform of complex numbers along axes."""
        raise Unsupported(f"{self.name} has no Fourier transform")

    def real_fourier(self, x: Tensor) -> Tensor:
        """That of real numbers along the last axis, without the conjugates."""
        raise Unsupported(f"{self.name} has no Fourier transform")

    @property
    def linalg(self) -> Any:
        """The library's module of decompositions, whose functions all libraries call alike."""
        raise Unsupported(f"{self.name} decomposes no matrices")

    def triangular_factors(self, x: Tensor) -> Tensor:
        """Both triangles of a matrix, by elimination with partial pivoting, in one."""
        raise Unsupported(f"{self.name} has no LU decomposition")

    def exponential(self, x: Tensor) -> Tensor:
        """The exponential of a square matrix."""
        raise Unsupported(f"{self.name} has no exponential of matrices")

    def sort(self, x: Tensor) -> Tensor:
        """The elements in order along the last axis."""
        raise Unsupported(f"{self.name} sorts nothing here")

    def largest(self, x: Tensor, count: int) -> Tensor:
        """The greatest elements along the last axis, in falling order."""
        raise Unsupported(f"{self.name} selects nothing here")

    def median(self, x: Tensor) -> Tensor:
        """The element in the middle of the order along the last axis, which is of odd length."""
        raise Unsupported(f"{self.name} selects nothing here")

    def kth(self, x: Tensor, k: int) -> Tensor:
        """The ``k``-th least element along the last axis, counted from 1."""
        raise Unsupported(f"{self.name} selects nothing here")

    def quantile(self, x: Tensor, fraction: float) -> Tensor:
        """What a fraction of the elements along the last axis is not above, between two elements by their distance."""
        raise Unsupported(f"{self.name} selects nothing here")

    def most_common(self, x: Tensor) -> Tensor:
        """The element that is there most often along the last axis, the least of several."""
        raise Unsupported(f"{self.name} counts nothing here")

    def argsort(self, x: Tensor) -> Tensor:
        """Where the elements in order are, along the last axis; equal ones stay in their order."""
        raise Unsupported(f"{self.name} sorts nothing here")

    def histogram(self, x: Tensor, bins: int, low: float, high: float) -> Tensor:
        """How many elements lie in each of some equal parts from ``low`` to ``high``."""
        raise Unsupported(f"{self.name} counts nothing here")

    def bincount(self, x: Tensor) -> Tensor:
        """How often each integer is there, from 0 to the greatest."""
        raise Unsupported(f"{self.name} counts nothing here")

    def searchsorted(self, x: Tensor, values: Tensor) -> Tensor:
        """How many elements of a vector that is in order are less than each value."""
        raise Unsupported(f"{self.name} searches nothing here")

    def unique(self, x: Tensor) -> Tensor:
        """The elements that are there, each once, in order."""
        raise Unsupported(f"{self.name} decides sizes before it computes")

    def eager(self, fn: Callable[..., Tensor], arrays: Sequence[Array]) -> Case:
        """A function of arrays whose result has a size that depends on them."""
        raise Unsupported(f"{self.name} decides sizes before it computes")

    def cumsum(self, x: Tensor, axis: int) -> Tensor:
        """The sum of the elements up to each, along an axis."""
        raise Unsupported(f"{self.name} has no running sum here")

    def cumprod(self, x: Tensor, axis: int) -> Tensor:
        """The product of the elements up to each, along an axis."""
        raise Unsupported(f"{self.name} has no running product here")

    def cummax(self, x: Tensor, axis: int) -> Tensor:
        """The maximum of the elements up to each, along an axis."""
        raise Unsupported(f"{self.name} has no running maximum here")

    def logcumsumexp(self, x: Tensor, axis: int) -> Tensor:
        """log(sum(exp(x))) of the elements up to each, along an axis."""
        raise Unsupported(f"{self.name} has no running sum of exponentials here")

    def lstm(self, x: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor) -> Tensor:
        """The hidden states of a long short-term memory in each step, which begins with zeros.

        Args:
          x: shape (steps, batch, inputs).
          w_ih: shape (4 * hidden, inputs), in the order input, forget, cell, output.
          w_hh: shape (4 * hidden, hidden).
          bias: shape (4 * hidden,).
        """
        raise Unsupported(f"{self.name} has no recurrent layer here")

    def gru(self, x: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor, bias_hh: Tensor) -> Tensor:
        """The hidden states of a gated recurrent unit in each step, which begins with zeros.

        Args:
          x: shape (steps, batch, inputs).
          w_ih: shape (3 * hidden, inputs), in the order reset, update, new.
          w_hh: shape (3 * hidden, hidden).
          bias: shape (3 * hidden,), added to what the inputs give.
          bias_hh: likewise, to what the hidden state gives.
        """
        raise Unsupported(f"{self.name} has no recurrent layer here")

    def scan(self, fn: Callable[[Tensor, Tensor], Tensor], start: Tensor, x: Tensor) -> Tensor:
        """``state = fn(state, part)`` for each part of ``x`` along the first axis; the states it returned, stacked."""
        raise Unsupported(f"{self.name} has no loop")

    def repeat(self, holds: Callable[[Tensor], Tensor], fn: Callable[[Tensor], Tensor], start: Tensor) -> Tensor:
        """``state = fn(state)`` while ``holds(state)``."""
        raise Unsupported(f"{self.name} has no loop")

    def recurrence(self, factor: Tensor, term: Tensor) -> Tensor:
        """``state = factor * state + term`` along the last axis from 0, as an associative scan of pairs."""
        raise Unsupported(f"{self.name} has no associative scan here")

    def gather(self, x: Tensor, index: Tensor) -> Tensor:
        """An element of its row for each element of ``index``, of as many rows."""
        raise Unsupported(f"{self.name} looks up nothing here")

    def scatter_add(self, values: Tensor, index: Tensor, width: int) -> Tensor:
        """Rows of zeros of some width, to which each of ``values`` was added at its index in the row."""
        raise Unsupported(f"{self.name} adds by comparing all positions")

    def embed(self, table: Tensor, tokens: Tensor) -> Tensor:
        """Rows of a table: shape (tokens, width) for as many tokens."""
        raise Unsupported(f"{self.name} looks up nothing here")

    def added_rows(self, values: Tensor, index: Tensor, rows: int) -> Tensor:
        """A table of so many rows, zeros to which each row of ``values`` was added at its index."""
        raise Unsupported(f"{self.name} adds rows by comparing all positions")

    def linear_q4(self, x: Tensor, packed: Tensor, scale: Tensor, least: Tensor) -> Tensor:
        """x @ w.T, where w comes in blocks of 32 along the inputs, each with a scale and a minimum.

        Args:
          x: shape (1, inputs).
          packed: bytes, (outputs, blocks, 16): the low nibbles are the block's first half.
          scale: shape (outputs, blocks).
          least: like ``scale``.
        """
        raise Unsupported(f"{self.name} would unpack the weights in memory first")

"""The ground floor of Tensor: what it holds, where its data comes from and goes to, and its gradient.
"""

from __future__ import annotations

from tg_dtype import ConstType, DType, dtypes, interop
from tg_lazy import LazyBuffer, Ops
from tg_lazy.ops import MEMORY
from tg_lazy.trackers import is_row_major
from tg_runtime import Device, capturing
from tg_shape import Variable, prod, sint

from ..autograd.differentiation import MODE
from ..autograd.functions import Contiguous, ContiguousBackward, Copy, Function, Same
from ..host import coerce, transfer
from ..host.coerce import to_dtype
from ..memory import disk
from ..memory.home import Clock
from ..memory.realization import enlist, realize_all, schedule_all
from . import printing
from .ingest import ingest, placed, value_of
from .sharing import Sharing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self

    from numpy.typing import NDArray

    from tg_lazy import ScheduleItem

DTypeLike = DType | str | type
_VIEW = Ops.VIEW


class Core(Sharing):
    """Data, placement and differentiation."""

    __slots__ = ()

    training: ClassVar[bool] = False

    def __init__(
        self,
        data: Any = None,
        device: str | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool | None = None,
    ) -> None:
        """Makes a tensor of ``data``: see the class."""
        wanted = None if dtype is None else to_dtype(dtype)
        self._lazy = ingest(data, placed(device), wanted, device is None)
        self.grad = self._ctx = self._home = self._place = None
        self._cut = False
        if requires_grad is not None:
            self._check_wish(requires_grad)
        self._wants_grad = requires_grad
        enlist(self)

    @classmethod
    def _wrap(cls, lazy: LazyBuffer, requires_grad: bool | None = False) -> Self:
        self = object.__new__(cls)
        self._lazy, self._wants_grad = lazy, requires_grad
        self.grad = self._ctx = self._home = self._place = None
        self._cut = False
        enlist(self)
        return self

    @classmethod
    def _value(cls, lazy: LazyBuffer) -> Self:
        """A tensor of this value, which may be that of other tensors: it shares no memory with them."""
        out = cls._wrap(lazy)
        out._part()
        return out

    def _apply(self, function: Function, *others: Self) -> Self:
        """The result of ``function`` on this tensor and ``others``, recorded if a gradient may be wanted."""
        out: Self = object.__new__(type(self))
        out.grad = out._ctx = out._home = out._place = None
        out._cut = False
        one = self._lazy if self._home is None else self.lazydata
        mine = self._wants_grad  # which a write with a gradient changes when the newest version is looked at
        parents: tuple[Self, ...]
        wants: tuple[bool, ...]
        if len(others) == 1:
            other = others[0]
            two = other._lazy if other._home is None else other.lazydata
            theirs = other._wants_grad
            out._lazy = lazy = function.forward(one, two)
            if lazy.op is _VIEW or lazy is one or lazy is two:
                out._share_with((one, two))
            parents, wants, open_ = (self, other), (mine is True, theirs is True), mine is None or theirs is None
        elif others:
            lazies = (one, *[other.lazydata for other in others])
            out._lazy = lazy = function.forward(*lazies)
            if lazy.op is _VIEW or lazy in lazies:
                out._share_with(lazies)
            every = (mine, *[other._wants_grad for other in others])
            parents, wants, open_ = (self, *others), tuple([wish is True for wish in every]), None in every
        else:
            out._lazy = lazy = function.forward(one)
            if function.view:
                self._show(out, function)
            elif lazy.op is _VIEW or lazy is one or (one.op is _VIEW and lazy is one.srcs[0]):  # flipped back
                out._share_with((one,))
            parents, wants, open_ = (self,), (mine is True,), mine is None
        needs = True in wants
        if (needs or open_) and lazy.dtype.kind == "float" and MODE.recording:
            function.parents = parents
            function.needs = wants
            function.wanted = needs
            function.stamp = Clock.now
            out._ctx, out._wants_grad = function, True if needs else None
            for parent in parents:
                context = parent._ctx
                if context is not None and not context.wanted:
                    parent._let_go_of_inputs()
        else:
            out._wants_grad = None if open_ and not needs else False
        enlist(out)
        return out

    def _let_go(self) -> None:
        """Forgets where the tensor comes from, unless a gradient is required: a chain must not keep all its links."""
        if self._ctx is not None and not self._ctx.wanted:
            self._ctx = None

    def _let_go_of_inputs(self) -> None:
        """Forgets where the tensor comes from if it was computed, and is no view of what it comes from."""
        if self._ctx is None or MODE.repeating:  # what is computed again is of a graph that is being gone through
            return
        base = self.lazydata.base
        parents: Any = self._ctx.parents
        if base.is_realized and all(parent.lazydata.base is not base for parent in parents):
            self._ctx = None

    # *** what it is ***

    @property
    def requires_grad(self) -> bool | None:
        """Whether ``backward`` gives this tensor a ``grad``; None leaves it open. Set to True, it is a leaf.

        Raises:
          TypeError: set to True, and the elements are not floats.
          RuntimeError: set to another value than True on what was computed from tensors that require a gradient.
        """
        return self._wants_grad

    @requires_grad.setter
    def requires_grad(self, value: bool | None) -> None:
        self._check_wish(value)
        if self._ctx is not None and self._ctx.wanted:
            if not value:
                raise RuntimeError(
                    f"requires_grad: a tensor of shape {self.shape} was computed from what requires a gradient; "
                    "detach() gives one that does not"
                )
            return
        self._let_go()
        self._wants_grad = value

    @property
    def shape(self) -> tuple[sint, ...]:
        """Sizes of the axes; symbolic ones are expressions."""
        return self._lazy.shape

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return self._lazy.dtype

    @property
    def device(self) -> str:
        """Canonical name of the device that holds or will hold the elements."""
        return self._lazy.device

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._lazy.shape)

    def _check_wish(self, requires_grad: object) -> None:
        if requires_grad is not None and requires_grad not in (True, False):
            raise TypeError(f"requires_grad: True, False or None, got {requires_grad!r}")
        if requires_grad and self._lazy.dtype.kind != "float":
            raise TypeError(f"requires_grad: a tensor of {self._lazy.dtype.name} has no gradient; only floats have")

    def numel(self) -> sint:
        """Number of elements."""
        return prod(self._lazy.shape)

    def size(self, dim: int | None = None) -> sint | tuple[sint, ...]:
        """The shape, or the size of one axis.

        Raises:
          IndexError: the axis is out of range.
        """
        if dim is not None and self.ndim == 0:
            raise IndexError("size: a tensor of shape () has no axes")
        return self.shape if dim is None else self.shape[self._axis(dim, "size")]

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def nbytes(self) -> sint:
        """Bytes of all elements."""
        return self.numel() * self.dtype.itemsize

    def is_floating_point(self) -> bool:
        """Whether the elements are floats."""
        return dtypes.is_float(self.dtype)

    def _axis(self, axis: int, what: str, extra: int = 0) -> int:
        """A non-negative axis; ``extra`` counts axes that the result will have more than the operand.

        Raises:
          TypeError: it is not an integer.
          IndexError: it is out of range.
        """
        ndim = len(self._lazy.shape) + extra
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise TypeError(f"{what}: an axis is an integer, got {axis!r}")
        limit = ndim or 1
        if not -limit <= axis < limit:
            raise IndexError(f"{what}: axis {axis} is out of range for shape {self.shape} ({-limit} to {limit - 1})")
        return axis + limit if axis < 0 else axis

    def _ints(self) -> tuple[int, ...]:
        """The shape, where every size is a number.

        Raises:
          ValueError: a size is symbolic and bound to no value.
        """
        shape = self._lazy.shape
        for dim in shape:
            if type(dim) is not int:
                return tuple(value_of(dim, shape) for dim in shape)
        return shape  # type: ignore[return-value]

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: the elements, computed now; not the graph that they came from."""
        elements = bytes(transfer.download(self._host(), self._ints()))
        leaf = None if self._ctx is not None else self.requires_grad
        return transfer.restored, (type(self), elements, self.dtype, self._ints(), self.device, leaf)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len: a tensor of shape () has no length")
        return value_of(self.shape[0], self.shape)

    def __bool__(self) -> bool:
        """Whether the only element is not 0: it is computed now.

        Raises:
          TypeError: there is not exactly one element.
        """
        if self.numel() != 1:
            raise TypeError(
                f"bool: a tensor of shape {self.shape} has no truth value; use .any() or .all(), or compare with None"
            )
        return bool(self.item())

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return printing.text_of(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return printing.html_of(self)

    def __format__(self, spec: str) -> str:
        """The text; of a single element the number in the given format, as ``f"{loss:.3f}"``.

        Raises:
          TypeError: a format is given for more than one element.
        """
        if not spec:
            return repr(self)
        if self.numel() != 1:
            raise TypeError(f"format: {spec!r} formats a number, not a tensor of shape {self.shape}; use .tolist()")
        return format(self.item(), spec)

    # *** computing ***

    def schedule_with_vars(self, *others: Self) -> tuple[list[ScheduleItem], dict[Variable, int]]:
        """The kernels that would compute this tensor and ``others``, and the values of variables. Runs nothing."""
        return schedule_all([tensor.lazydata for tensor in (self, *others)])

    def schedule(self, *others: Self) -> list[ScheduleItem]:
        """The kernels that would compute this tensor and ``others``. Runs nothing."""
        return self.schedule_with_vars(*others)[0]

    def realize(self, *others: Self) -> Self:
        """Computes this tensor and ``others`` now, and returns this tensor.

        Those that leave ``requires_grad`` open are leaves from now on.

        Raises:
          MemoryError: there is not enough memory; the message says how much was asked and is held.
        """
        wanted = []
        for tensor in (self, *others):
            if tensor._ctx is not None:
                tensor._let_go()
            wanted.append(tensor.lazydata)
        realize_all(wanted)
        return self

    @property
    def is_realized(self) -> bool:
        """Whether the elements (of the whole that this is a view of) are in memory."""
        return self.lazydata.base.is_realized

    def contiguous(self) -> Self:
        """The same elements in memory, row-major: this tensor, if it lies like that already; else a copy.

        A tensor that is no view lies row-major, and so does a range of one. Memory is asked for when it is realised.
        """
        home = self._memory()
        view = (self._place or self.lazydata).st.views[-1]
        if view.mask is None and is_row_major(view):
            if not home.direct or home.base.op not in MEMORY:
                home.settle()
            return self
        return self._apply(Contiguous())

    def _copied(self) -> Self:
        """The same elements as a tensor that shares no memory with this one. The gradient flows."""
        return self._apply(Same())

    def clone(self) -> Self:
        """The same elements in new memory: what is assigned to one does not show in the other. The gradient flows."""
        return self._apply(Contiguous(fresh=True))

    def contiguous_backward(self) -> Self:
        """The tensor itself; its gradient is put in memory before it flows on."""
        return self._apply(ContiguousBackward())

    def to(self, device: Any = None, dtype: DTypeLike | None = None) -> Self:
        """The tensor on another device, in another dtype, or both; itself if nothing changes.

        Args:
          device: a device's name; or a dtype, alone, as ``t.to("float16")`` or ``t.to(np.float16)``; or a tensor, whose
            device and dtype are meant. None is the tensor's own device if a dtype is given, else the default one.
          dtype: a dtype, or what stands for one.

        Raises:
          UnknownDevice: no package offers such a device; the message lists what there is.
          DeviceUnavailable: this machine lacks what the device needs.

        Example:
            >>> from tg_frontend import Tensor
            >>> Tensor([1.5, 2.5], device="NUMPY").to("int32")
            Tensor([1, 2], device='NUMPY')
        """
        if isinstance(device, Core):
            return self.to(device.device, device.dtype)
        if coerce.names_dtype(device):
            if dtype is not None:
                raise TypeError(f"to: two dtypes, {device!r} and {dtype!r}; a device comes first")
            device, dtype = None, device
        out = self if dtype is None else self.cast(dtype)  # type: ignore[attr-defined]
        if device is None and dtype is not None:
            return out
        if not (device is None or isinstance(device, str)):
            raise TypeError(f"to: a device is a name, got {device!r}; a dtype is one of Tensor's, numpy's or PyTorch's")
        name = Device.canonicalize(device)
        if name == self.device:
            return out
        Device[name]  # one that is not there is told now, not when something is computed
        return out._apply(Copy(name))

    def to_(self, device: str | None) -> Self:
        """Moves this tensor, and its gradient, to another device. Returns it.

        Raises:
          UnknownDevice: no package offers such a device; the message lists what there is.
          DeviceUnavailable: this machine lacks what the device needs.
        """
        name = Device.canonicalize(device)
        if name != self.device:
            Device[name]
            self.lazydata = self.lazydata.copy_to(name)
            if self.grad is not None:
                self.grad = self.grad.to(name)
        return self

    def _host(self) -> LazyBuffer:
        """This tensor's elements, realised and row-major.

        Raises:
          ValueError: the shape is symbolic and bound to no value.
        """
        if capturing():
            raise RuntimeError(
                f"a tensor of shape {self.shape} was read inside of a function while TinyJit records it; "
                "a replay would not read it again: return it instead"
            )
        self._ints()  # a size that is bound to no value must be named before anything is computed
        lazy = self.lazydata
        if not (lazy.base.is_realized and lazy.st.contiguous):
            self._let_go()
            if transfer.runs_nothing(lazy.device):
                lazy = lazy.copy_to(disk.HOST)
            lazy = lazy.contiguous()
            realize_all([lazy])
        return lazy

    def data(self) -> memoryview:
        """The elements as a memoryview of this shape (of bytes, flat, where Python has no such format).

        It shares the device's memory where the host can address that: take what you need before computing on.
        """
        self._lend()
        lazy = self._host()
        flat = transfer.download(lazy, self._ints())
        code, shape = lazy.dtype.fmt, self._ints()
        if code is None or code == "e":
            return flat
        return transfer.shaped(flat, code, shape)

    def numpy(self) -> NDArray[Any]:
        """The elements as a numpy array of its own; float32 for the floats that numpy has not.

        Example:
            >>> from tg_frontend import Tensor
            >>> Tensor([[1, 2], [3, 4]], device="NUMPY").numpy().tolist()
            [[1, 2], [3, 4]]
        """
        if self.dtype.kind == "float" and self.dtype.fmt is None:
            return self._wrap(self.lazydata.cast(dtypes.float32)).numpy()
        lazy = self._host()
        return transfer.as_array(transfer.download(lazy, self._ints()), lazy.dtype, self._ints()).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """For ``numpy.asarray``: the memory itself where numpy can use it (see ``__dlpack__``), else a copy.

        ``numpy.array``, which asks for ``copy=True``, gets a copy.

        Raises:
          ValueError: ``copy=False``, and the device's memory or the dtype is none that numpy can use.
        """
        name = interop.to_numpy_name(self.dtype)
        shared = name is not None and transfer.is_addressable(self.device) and (dtype is None or name == str(dtype))
        if copy is True or (copy is None and not shared):
            out = self.numpy()
            return out if dtype is None else out.astype(dtype)
        self._lend()
        lazy = self._host()
        if not shared:
            raise ValueError(f"__array__: a tensor of {self.dtype.name} on {self.device} as {dtype or name} is a copy")
        return transfer.as_array(transfer.download(lazy, self._ints()), lazy.dtype, self._ints())

    def __buffer__(self, flags: int) -> memoryview:
        """For ``memoryview(tensor)``, since Python 3.12: see :meth:`data`."""
        return self.data()

    def _nested(self) -> Any:
        lazy = self._host()
        return transfer.nest(transfer.unpack(transfer.download(lazy, self._ints()), lazy.dtype), self._ints())

    def tolist(self) -> Any:
        """The elements as nested lists; a number for the shape ()."""
        return self._nested()

    def item(self) -> ConstType:
        """The only element as a Python number.

        Raises:
          ValueError: there is not exactly one.
        """
        if self.numel() != 1:
            raise ValueError(f"item: a tensor of shape {self.shape} has not exactly one element")
        values = self.lazydata.reshape(())
        return type(self)._wrap(values)._nested()  # type: ignore[no-any-return]

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        """For ``range(t)``, ``list[t]``, ``bin(t)``: the only element, of an integer dtype.

        Raises:
          TypeError: there is not exactly one element, or it is no integer.
        """
        if self.numel() != 1 or not dtypes.is_int(self.dtype):
            raise TypeError(
                f"index: a tensor of shape {self.shape} and {self.dtype.name} is no integer; "
                "only one element of an integer dtype is"
            )
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

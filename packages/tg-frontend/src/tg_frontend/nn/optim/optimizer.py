"""What optimisers share, and several as one."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_runtime import capturing

from ...autograd.differentiation import MODE, Switch
from ...keywords import public
from ...memory.realization import realize_all
from ...tensor import Tensor
from ..describing import described
from ..state import load_state_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def _dedupe(tensors: Sequence[Tensor]) -> list[Tensor]:
    return list({id(tensor): tensor for tensor in tensors}.values())


@described
@public
class Optimizer:
    """What optimisers share. A subclass implements :meth:`_step`.

    Args:
      params: tensors; those that leave ``requires_grad`` open get it. Those that require a gradient are realised, in
        memory of their own. Those that require none, and integers, are only realised with each step (running
        statistics, for instance).
      lr: learning rate.

    Attributes:
      params: the tensors that are optimised.
      buffers: the others.
      lr: the learning rate, a tensor of shape (1,). Setting it, ``optimizer.lr = 0.1``, writes the number into that
        tensor, so that a TinyJit sees it; so does ``optimizer.lr.assign([0.1])``.

    Raises:
      ValueError: if the learning rate is negative, there is no tensor to optimise, one is the result of operations that
        require a gradient, or the tensors are on different devices.
      TypeError: if something is no tensor.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> class SignDescent(nn.optim.Optimizer):
      ...     def _step(self, ready):
      ...         for param, gradient in ready:
      ...             param.assign(param.detach() - gradient.sign() * self.lr)
      ...         return []
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = SignDescent([weight], lr=0.5)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight
      Tensor([0.5, 1.5], requires_grad=True)
    """

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        name, params = type(self).__name__, list(params)
        if lr < 0:
            raise ValueError(f"{name}: the learning rate {lr} is negative")
        for position, param in enumerate(params):
            if not isinstance(param, Tensor):
                raise TypeError(f"{name}: parameter {position} is a {type(param).__name__}, not a Tensor")
            if param.is_complex():
                raise TypeError(f"{name}: parameter {position} is complex; give its .real and .imag")
            if param.requires_grad is None:
                param.requires_grad_(param.is_floating_point())
            if param._ctx is not None:
                raise ValueError(f"{name}: parameter {position}, of shape {param.shape}, is a result, not a leaf")
        self.params = _dedupe([param for param in params if param.requires_grad])
        self.buffers = _dedupe([param for param in params if not param.requires_grad])
        if not self.params:
            raise ValueError(f"{name}: none of the {len(params)} parameters requires a gradient")
        self.device = self.params[0].device
        elsewhere = {param.device for param in self.params} - {self.device}
        if elsewhere:
            raise ValueError(f"{name}: parameters on {self.device} and {', '.join(sorted(elsewhere))}")
        for param in self.params:
            param._memory().settle()
        # in memory of their own from the start: else the first step would have other kernels than all that follow
        realize_all([param.lazydata for param in self.params])
        self.lr = Tensor([lr], device=self.device, dtype=dtypes.float32, requires_grad=False)

    row_sparse: bool = False
    """Whether :meth:`_step` takes row-sparse gradients as they are; if not, they are refused."""

    settings: tuple[str, ...] = ()
    """Attributes with numbers that are part of a recorded step: a TinyJit records anew when one was changed."""

    @property
    def lr(self) -> Tensor:
        """The learning rate, see the class.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
          >>> optimizer.lr = 0.25
          >>> optimizer.lr
          Tensor([0.25])
        """
        return vars(self)["lr"]  # type: ignore[no-any-return]

    @lr.setter
    def lr(self, value: Tensor | float) -> None:
        self._set_lr(value)

    def _set_lr(self, value: Tensor | float) -> None:
        if "lr" not in vars(self) and isinstance(value, Tensor):
            vars(self)["lr"] = value  # where get_state_dict finds it
            return
        if isinstance(value, Tensor):
            if value is not self.lr:
                self.lr.assign(value.detach().reshape(1).cast(dtypes.float32).to(self.device))
            return
        if not isinstance(value, (int, float)):
            raise TypeError(f"{type(self).__name__}: the learning rate is a {type(value).__name__}, not a number")
        if not value >= 0:
            raise ValueError(f"{type(self).__name__}: the learning rate {value} is negative")
        if capturing():
            raise RuntimeError(
                f"{type(self).__name__}: the learning rate was set to the number {value} inside of a function while "
                "TinyJit records it; every replay would set the same: set it outside, or to a tensor"
            )
        self.lr.assign([float(value)])

    def state_dict(self) -> dict[str, Tensor]:
        """The learning rate and the state of every parameter, by names that begin as PyTorch's do.

        Parameters are counted as the optimiser holds them. The tensors are the optimiser's own: what it does later
        shows in them. ``safe_save`` takes the dict as it is.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0, 2.0])], lr=0.1, momentum=0.9)
          >>> sorted(optimizer.state_dict())
          ['param_groups.0.lr', 'state.0.momentum_buffer']
        """
        return {"param_groups.0.lr": self.lr, **self._named()}

    def _named(self) -> dict[str, Tensor]:
        """The state of the parameters, by name."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Overwrites the learning rate and the state of every parameter with what :meth:`state_dict` gave.

        Raises:
          KeyError: if a name is missing on one side.
          ValueError: if shapes differ.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> old, new = (nn.optim.SGD([Tensor([1.0])], lr=lr) for lr in (0.5, 0.25))
          >>> new.load_state_dict(old.state_dict())
          >>> new.lr
          Tensor([0.5])
        """
        load_state_dict(self.state_dict(), state_dict)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients; or fills them with zeros, where they are.

        A TinyJit outside of which it is called, and in which gradients of several calls add up, is recorded once if
        gradients stay where they are, and anew whenever there are none.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([1.0, 2.0])
          >>> optimizer = nn.optim.SGD([weight], lr=0.25)
          >>> _ = (weight * weight).sum().backward()
          >>> optimizer.zero_grad()
          >>> weight.grad is None
          True
        """
        for param in self.params:
            if set_to_none:
                param.grad = None
            elif param.grad is not None and param.grad.is_sparse:
                param.grad._forget_rows()
            elif param.grad is not None:
                param.grad.assign(0)

    def _state(self, param: Tensor) -> Tensor:
        """Zeros in memory, of the shape of a parameter and at least float32."""
        dtype = dtypes.float64 if param.dtype is dtypes.float64 else dtypes.float32
        return Tensor.zeros(*param.shape, dtype=dtype, device=param.device, requires_grad=False).contiguous()

    def schedule_step(self) -> list[Tensor]:
        """Makes one step without computing it. Parameters without a gradient stay as they are.

        Returns:
          What is to be realised: parameters, state and buffers. Gradients that :meth:`zero_grad` forgets before that
          are not kept, which spares a recorded step their memory.

        Raises:
          RuntimeError: if no parameter has a gradient, or one has a row-sparse gradient that is not taken.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([1.0, 2.0])
          >>> optimizer = nn.optim.SGD([weight], lr=0.25)
          >>> _ = (weight * weight).sum().backward()
          >>> (param,) = optimizer.schedule_step()
          >>> param is weight, weight.realize()
          (True, Tensor([0.5, 1. ], requires_grad=True))
        """
        ready = [(param, param.grad) for param in self.params if param.grad is not None]
        if not ready:
            raise RuntimeError(f"{type(self).__name__}: no parameter has a gradient; call backward() before step()")
        if not self.row_sparse:
            for param, gradient in ready:
                if gradient.is_sparse:
                    raise RuntimeError(
                        f"{type(self).__name__}: {self._called(param)} has a row-sparse gradient, which this optimiser "
                        "cannot take: use nn.optim.SparseAdam or nn.optim.SGD for it, or make the gradient dense, "
                        "param.grad = param.grad.to_dense()"
                    )
        with Switch(MODE, "recording", False):
            changed = self._step(ready)
        return [*changed, *(param for param, _ in ready), *self.buffers]

    def step(self) -> None:
        """Makes one step: what was computed from the old parameters, a loss for instance, is computed with it.

        Raises:
          RuntimeError: if no parameter has a gradient.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([1.0, 2.0])
          >>> optimizer = nn.optim.SGD([weight], lr=0.25)
          >>> _ = (weight * weight).sum().backward()
          >>> optimizer.step()
          >>> weight
          Tensor([0.5, 1. ], requires_grad=True)
        """
        realize_all([tensor.lazydata for tensor in self.schedule_step()])

    def _called(self, param: Tensor) -> str:
        """A parameter, for messages."""
        number = next(n for n, one in enumerate(self.params) if one is param)
        return f"parameter {number}, of shape {param.shape},"

    def _step(self, ready: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        """Assigns to the parameters; returns the other tensors that it assigned to."""
        raise TypeError(f"{type(self).__name__} does not say how to make a step")


@public
class OptimizerGroup(Optimizer):
    """Several optimisers as one.

    Raises:
      ValueError: if there is none.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight, bias = Tensor([1.0, 2.0]), Tensor([1.0])
      >>> group = nn.optim.OptimizerGroup(nn.optim.SGD([weight], lr=0.25), nn.optim.SGD([bias], lr=0.5))
      >>> _ = ((weight * weight).sum() + bias).backward()
      >>> group.step()
      >>> weight, bias
      (Tensor([0.5, 1. ], requires_grad=True), Tensor([0.5], requires_grad=True))
    """

    def __init__(self, *optimizers: Optimizer) -> None:
        if not optimizers:
            raise ValueError("OptimizerGroup: at least one optimiser is wanted")
        self.optimizers = list(optimizers)
        self.params = _dedupe([param for optimizer in optimizers for param in optimizer.params])
        self.buffers = _dedupe([param for optimizer in optimizers for param in optimizer.buffers])
        self.device = optimizers[0].device

    @property
    def lr(self) -> Tensor:
        """The learning rate of the first optimiser; setting it sets that of all.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> group = nn.optim.OptimizerGroup(nn.optim.SGD([Tensor([1.0])]), nn.optim.Adam([Tensor([1.0])]))
          >>> group.lr = 0.25
          >>> [optimizer.lr.item() for optimizer in group.optimizers]
          [0.25, 0.25]
        """
        return self.optimizers[0].lr

    @lr.setter
    def lr(self, value: Tensor | float) -> None:
        for optimizer in self.optimizers:
            optimizer.lr = value

    def state_dict(self) -> dict[str, Tensor]:
        """The state of each optimiser, its number in front of the names.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.optim.OptimizerGroup(nn.optim.SGD([Tensor([1.0])], lr=0.5)).state_dict()
          {'0.param_groups.0.lr': Tensor([0.5])}
        """
        return {f"{n}.{name}": t for n, one in enumerate(self.optimizers) for name, t in one.state_dict().items()}

    def __getitem__(self, position: int) -> Optimizer:
        return self.optimizers[position]

    def schedule_step(self) -> list[Tensor]:
        """Makes one step of each optimiser without computing it.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([1.0, 2.0])
          >>> group = nn.optim.OptimizerGroup(nn.optim.SGD([weight], lr=0.25))
          >>> _ = (weight * weight).sum().backward()
          >>> [param.shape for param in group.schedule_step()]
          [(2,)]
        """
        return [tensor for optimizer in self.optimizers for tensor in optimizer.schedule_step()]

"""Recurrent layers: RNN, LSTM and GRU, over whole sequences and as single cells.

Names, arguments and the layout of parameters are PyTorch's, so that state files fit. A sequence is gone through by
:func:`~tg_frontend.scan`: a step is compiled once, however long the sequence is. What the gates get from the inputs is
one product for the whole sequence, before the loop.

Sources: Elman, "Finding structure in time", 1990; Hochreiter and Schmidhuber, "Long short-term memory", 1997, with the
forget gate of Gers et al., 2000; Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014, with
the reset gate applied after the product.
"""

from __future__ import annotations

from ..tensor import Tensor
from ..transform.scan import scan
from .functional.sizes import positive
from .initial import for_sums
from .layering import layer_class
from .module import Module
from .utils.rnn import Layout, PackedSequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    State = tuple[Tensor, ...]
    Sequences = TypeVar("Sequences", Tensor, PackedSequence)


def _rnn_step(gates: Tensor, state: State, weights: _Weights) -> State:
    total = gates + weights.product(state[0])
    return (total.relu() if weights.relu else total.tanh(),)


def _lstm_step(gates: Tensor, state: State, weights: _Weights) -> State:
    into, forget, new, out = (gates + weights.product(state[0])).chunk(4, -1)
    cell = forget.sigmoid() * state[1] + into.sigmoid() * new.tanh()
    hidden = out.sigmoid() * cell.tanh()
    return hidden if weights.hr is None else hidden.linear(weights.hr.T), cell


def _gru_step(gates: Tensor, state: State, weights: _Weights) -> State:
    reset, update, new = gates.chunk(3, -1)
    own_reset, own_update, own_new = weights.product(state[0]).chunk(3, -1)
    z = (update + own_update).sigmoid()
    candidate = (new + (reset + own_reset).sigmoid() * own_new).tanh()
    return (candidate + z * (state[0] - candidate),)


class _Weights:
    """What one layer computes with in one direction.

    Attributes:
      ih: applied to inputs; shape (gates, inputs).
      hh: applied to the hidden state; shape (gates, hidden).
      hr: applied to the result, where there is a projection.
      bias_ih: added to what ``ih`` gives; or None.
      bias_hh: to what ``hh`` gives; or None.
      relu: whether a plain recurrent layer uses the rectifier in place of tanh.
    """

    def __init__(self, owner: Any, suffix: str, relu: bool) -> None:
        self.ih, self.hh = getattr(owner, f"weight_ih{suffix}"), getattr(owner, f"weight_hh{suffix}")
        self.bias_ih, self.bias_hh = getattr(owner, f"bias_ih{suffix}", None), getattr(owner, f"bias_hh{suffix}", None)
        self.hr = getattr(owner, f"weight_hr{suffix}", None)
        self.relu = relu

    def gates(self, x: Tensor) -> Tensor:
        """What the gates get from inputs, of one step or of all."""
        return x.linear(self.ih.T, self.bias_ih)

    def product(self, hidden: Tensor) -> Tensor:
        """What they get from the hidden state."""
        return hidden.linear(self.hh.T, self.bias_hh)


def _checked(name: str, x: Tensor, size: int) -> None:
    if x.ndim not in (2, 3) or x.shape[-1] != size:
        raise ValueError(f"{name}: the input has shape {x.shape}, not (steps, batch, {size}) or (steps, {size})")


@layer_class
class RNNCellBase(Module):
    """What cells of recurrent layers are: one step.

    Args:
      input_size: length of the last axis of the input.
      hidden_size: length of the last axis of the hidden state.
      bias: whether there are biases.
      num_chunks: how many gates a step computes, each of the size of the hidden state.

    Example:
      >>> from tg_frontend import nn
      >>> isinstance(nn.LSTMCell(3, 5), nn.RNNCellBase), nn.RNNCellBase(3, 5, True, 4).weight_ih.shape
      (True, (20, 3))
    """

    input_size: int
    hidden_size: int
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int) -> None:
        self.input_size, self.hidden_size = input_size, hidden_size
        rows = num_chunks * hidden_size
        self.weight_ih = for_sums(rows, input_size, terms=hidden_size)
        self.weight_hh = for_sums(rows, hidden_size, terms=hidden_size)
        self.bias_ih = for_sums(rows, terms=hidden_size) if bias else None
        self.bias_hh = for_sums(rows, terms=hidden_size) if bias else None

    @property
    def bias(self) -> bool:
        """Whether there are biases.

        Example:
          >>> from tg_frontend import nn
          >>> nn.GRUCell(3, 5).bias
          True
        """
        return self.bias_ih is not None

    def _step(self, step: Callable[..., State], x: Tensor, state: State | None, count: int, relu: bool) -> State:
        name = type(self).__name__
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise ValueError(f"{name}: the input has shape {x.shape}, not (batch, {self.input_size})")
        shape = (*x.shape[:-1], self.hidden_size)
        if state is None:
            state = (Tensor.zeros(*shape, dtype=x.dtype, device=x.device),) * count
        for part in state:
            if part.shape != shape:
                raise ValueError(f"{name}: the state has shape {part.shape}, not {shape}")
        weights = _Weights(self, "", relu)
        return step(weights.gates(x), state, weights)


@layer_class
class RNNCell(RNNCellBase):
    """tanh(x @ weight_ih.T + bias_ih + hidden @ weight_hh.T + bias_hh).

    Args:
      input_size: length of the last axis of the input.
      hidden_size: length of the last axis of the hidden state.
      bias: whether there are biases.
      nonlinearity: ``"tanh"`` or ``"relu"``.

    Raises:
      ValueError: on another nonlinearity.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.RNNCell(3, 4)(Tensor.ones(2, 3)).shape
      (2, 4)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh") -> None:
        self.nonlinearity = _known(nonlinearity, "RNNCell")
        super().__init__(input_size, hidden_size, bias, 1)

    def forward(self, x: Tensor, hx: Tensor | None = None) -> Tensor:
        """Shapes (batch, inputs) and (batch, hidden), or without batch; zeros for no state.

        Raises:
          ValueError: on other shapes.
        """
        return self._step(_rnn_step, x, None if hx is None else (hx,), 1, self.nonlinearity == "relu")[0]


@layer_class
class LSTMCell(RNNCellBase):
    """One step of a long short-term memory.

    Args:
      input_size: length of the last axis of the input.
      hidden_size: length of the last axis of the hidden and of the cell state.
      bias: whether there are biases.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> hidden, cell = nn.LSTMCell(3, 4)(Tensor.ones(2, 3))
      >>> hidden.shape, cell.shape
      ((2, 4), (2, 4))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(input_size, hidden_size, bias, 4)

    def forward(self, x: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Shapes (batch, inputs) and twice (batch, hidden), or without batch; zeros for no state.

        Returns:
          The new hidden and cell states.

        Raises:
          ValueError: on other shapes.
        """
        hidden, cell = self._step(_lstm_step, x, hx, 2, False)
        return hidden, cell


@layer_class
class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit.

    Args:
      input_size: length of the last axis of the input.
      hidden_size: length of the last axis of the hidden state.
      bias: whether there are biases.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.GRUCell(3, 4)(Tensor.ones(2, 3)).shape
      (2, 4)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        super().__init__(input_size, hidden_size, bias, 3)

    def forward(self, x: Tensor, hx: Tensor | None = None) -> Tensor:
        """Shapes (batch, inputs) and (batch, hidden), or without batch; zeros for no state.

        Raises:
          ValueError: on other shapes.
        """
        return self._step(_gru_step, x, None if hx is None else (hx,), 1, False)[0]


def _known(nonlinearity: str, name: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f'{name}: nonlinearity is "tanh" or "relu", got {nonlinearity!r}')
    return nonlinearity


_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}
"""How many gates a step computes, by what PyTorch calls the kind of a layer."""


@layer_class
class RNNBase(Module):
    """What recurrent layers are: layers of cells, each over the whole sequence.

    Args:
      mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU", which says how many gates there are.
      input_size: length of the last axis of the input.
      hidden_size: length of the last axis of the hidden state.
      num_layers: how many layers there are. This and the others are those of :class:`LSTM`.

    Raises:
      ValueError: if there is no such mode, or a number is out of range.

    Example:
      >>> from tg_frontend import nn
      >>> isinstance(nn.GRU(3, 5), nn.RNNBase), nn.RNNBase("LSTM", 3, 5).weight_hh_l0.shape
      (True, (20, 5))
    """

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        if mode not in _GATES:
            raise ValueError(f"{name}: mode {mode!r}; there are {', '.join(_GATES)}")
        self.mode, gates = mode, _GATES[mode]
        positive(name, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        for what, answer in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(answer, bool):
                raise TypeError(f"{name}: {what} is True or False, got {answer!r}")
        if not 0 <= dropout <= 1:
            raise ValueError(f"{name}: dropout is from 0 to 1, got {dropout}")
        if not 0 <= proj_size < hidden_size:
            raise ValueError(f"{name}: proj_size is below hidden_size, got {proj_size} and {hidden_size}")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
        self.bidirectional, self.proj_size = bidirectional, proj_size
        rows, width = gates * hidden_size, proj_size or hidden_size
        for layer, suffix in self._suffixes():
            inputs = input_size if layer == 0 else width * (2 if bidirectional else 1)
            setattr(self, f"weight_ih{suffix}", for_sums(rows, inputs, terms=hidden_size))
            setattr(self, f"weight_hh{suffix}", for_sums(rows, width, terms=hidden_size))
            if bias:
                setattr(self, f"bias_ih{suffix}", for_sums(rows, terms=hidden_size))
                setattr(self, f"bias_hh{suffix}", for_sums(rows, terms=hidden_size))
            if proj_size:
                setattr(self, f"weight_hr{suffix}", for_sums(proj_size, hidden_size, terms=hidden_size))

    def _suffixes(self) -> list[tuple[int, str]]:
        """Layers and directions in order: the layer's number, and how the names of its parameters end."""
        ways = ("", "_reverse") if self.bidirectional else ("",)
        return [(layer, f"_l{layer}{way}") for layer in range(self.num_layers) for way in ways]

    def _run(
        self, step: Callable[..., State], x: Sequences, states: State | None, sizes: tuple[int, ...],
        relu: bool = False,
    ) -> tuple[Sequences, State]:  # fmt: skip
        """The last layer's hidden states in each step, and each layer's state after the last step."""
        name = type(self).__name__
        if isinstance(x, PackedSequence):
            if x.data.ndim != 2 or x.data.shape[1] != self.input_size:
                raise ValueError(f"{name}: packed elements have shape {x.data.shape}, not (…, {self.input_size})")
            layout = Layout.of(x, name)
            padded = layout.unpacked(x.data)
            there = layout.there(padded).unsqueeze(-1)
            out, ends = self._layers(step, padded, self._begun(padded, states, sizes, True), relu, there)
            return x._replace(data=layout.packed(out)), ends
        _checked(name, x, self.input_size)
        batched = x.ndim == 3
        x = (x.transpose(0, 1) if self.batch_first else x) if batched else x.unsqueeze(1)
        out, ends = self._layers(step, x, self._begun(x, states, sizes, batched), relu)
        if not batched:
            return out.squeeze(1), tuple(end.squeeze(1) for end in ends)
        return (out.transpose(0, 1) if self.batch_first else out), ends

    def _begun(self, x: Tensor, states: State | None, sizes: tuple[int, ...], batched: bool) -> State:
        """The states before the first step: those that are given, or zeros."""
        count, batch = len(self._suffixes()), x.shape[1]
        if states is None:
            return tuple(Tensor.zeros(count, batch, size, dtype=x.dtype, device=x.device) for size in sizes)
        states = states if batched else tuple(state.unsqueeze(1) for state in states)
        for state, size in zip(states, sizes, strict=True):
            if state.shape != (count, batch, size):
                got = state.shape if batched else (state.shape[0], *state.shape[2:])
                wanted = (count, batch, size) if batched else (count, size)
                raise ValueError(f"{type(self).__name__}: a state has shape {got}, not {wanted}")
        return states

    def _layers(
        self, step: Callable[..., State], x: Tensor, states: State, relu: bool, there: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Every layer in both directions over inputs of shape (steps, batch, inputs).

        Args:
          there: whether a sequence has a step, shape (steps, batch, 1): where not, its state stays as it is.
        """
        finals: list[State] = []
        ways: list[Tensor] = []
        for place, (layer, suffix) in enumerate(self._suffixes()):
            weights = _Weights(self, suffix, relu)
            first = tuple(state[place] for state in states)

            def advance(state: State, inputs: State, weights: _Weights = weights) -> tuple[State, Tensor]:
                new = step(inputs[0], state, weights)
                if len(inputs) > 1:
                    new = tuple(inputs[1].where(now, old) for now, old in zip(new, state, strict=True))
                return new, new[0]

            inputs = (weights.gates(x),) if there is None else (weights.gates(x), there)
            final, hidden = scan(advance, first, inputs, reverse=suffix.endswith("_reverse"))
            finals.append(final)
            ways.append(hidden)
            if len(ways) == (2 if self.bidirectional else 1):
                x = ways[0].cat(*ways[1:], dim=-1) if len(ways) > 1 else ways[0]
                ways.clear()
                if self.dropout and layer + 1 < self.num_layers:
                    x = x.dropout(self.dropout)
        return x, tuple(Tensor.stack(*parts) for parts in zip(*finals, strict=True))


@layer_class
class RNN(RNNBase):
    """Layers of :class:`RNNCell` over sequences.

    Args:
      input_size: length of the last axis of the input.
      hidden_size: length of the last axis of the hidden state.
      num_layers: how many layers; each gets the hidden states of the one before as its input.
      nonlinearity: ``"tanh"`` or ``"relu"``.
      bias: whether there are biases.
      batch_first: sequences have shape (batch, steps, …) in place of (steps, batch, …).
      dropout: the part of each layer's hidden states, but for the last, that is dropped in training.
      bidirectional: each layer also goes through the sequence from its end; the hidden states stand side by side.

    Attributes:
      weight_ih_l0: shape (hidden, inputs); and so on for each layer, ending in ``_reverse`` for the other direction.
      weight_hh_l0: shape (hidden, hidden).
      bias_ih_l0: shape (hidden,), if there are biases.
      bias_hh_l0: likewise.

    Raises:
      ValueError: on another nonlinearity, no layer, no hidden unit, or a dropout that is not from 0 to 1.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> out, last = nn.RNN(3, 4, num_layers=2)(Tensor.ones(7, 5, 3))
      >>> out.shape, last.shape
      ((7, 5, 4), (2, 5, 4))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
    ) -> None:  # fmt: skip
        self.nonlinearity = _known(nonlinearity, "RNN")
        mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)

    def forward(self, x: Sequences, hx: Tensor | None = None) -> tuple[Sequences, Tensor]:
        """The hidden states of the last layer in each step, and those of all layers after the last step.

        Args:
          x: shape (steps, batch, inputs), or (steps, inputs); or a :class:`~tg_frontend.nn.utils.rnn.PackedSequence`,
            and then the hidden states are one, too.
          hx: the first hidden states, shape (layers times directions, batch, hidden); zeros if not given.

        Raises:
          ValueError: on other shapes.
        """
        states = None if hx is None else (hx,)
        out, (last,) = self._run(_rnn_step, x, states, (self.hidden_size,), self.nonlinearity == "relu")
        return out, last


@layer_class
class LSTM(RNNBase):
    """Layers of :class:`LSTMCell` over sequences.

    Args:
      input_size: length of the last axis of the input.
      hidden_size: length of the last axis of the cell state, and of the hidden state if that is not projected.
      num_layers: how many layers; each gets the hidden states of the one before as its input.
      bias: whether there are biases.
      batch_first: sequences have shape (batch, steps, …) in place of (steps, batch, …).
      dropout: the part of each layer's hidden states, but for the last, that is dropped in training.
      bidirectional: each layer also goes through the sequence from its end; the hidden states stand side by side.
      proj_size: if not 0, hidden states are projected to this length.

    Attributes:
      weight_ih_l0: shape (4 * hidden, inputs), in the order input, forget, cell, output; and so on for each layer,
        ending in ``_reverse`` for the other direction.
      weight_hh_l0: shape (4 * hidden, hidden or projected).
      bias_ih_l0: shape (4 * hidden,), if there are biases.
      bias_hh_l0: likewise.
      weight_hr_l0: shape (projected, hidden), if there is a projection.

    Raises:
      ValueError: on no layer, no hidden unit, a dropout that is not from 0 to 1, or a projection that is no smaller.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> out, (hidden, cell) = nn.LSTM(3, 4, batch_first=True)(Tensor.ones(5, 7, 3))
      >>> out.shape, hidden.shape, cell.shape
      ((5, 7, 4), (1, 5, 4), (1, 5, 4))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
    ) -> None:  # fmt: skip
        ways = (bidirectional, proj_size)
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, *ways)

    def forward(
        self, x: Sequences, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Sequences, tuple[Tensor, Tensor]]:  # fmt: skip
        """The hidden states of the last layer in each step; hidden and cell states of all layers after the last step.

        Args:
          x: shape (steps, batch, inputs), or (steps, inputs); or a :class:`~tg_frontend.nn.utils.rnn.PackedSequence`,
            and then the hidden states are one, too.
          hx: the first hidden and cell states, shape (layers times directions, batch, hidden); zeros if not given.

        Raises:
          ValueError: on other shapes.
        """
        out, (hidden, cell) = self._run(_lstm_step, x, hx, (self.proj_size or self.hidden_size, self.hidden_size))
        return out, (hidden, cell)


@layer_class
class GRU(RNNBase):
    """Layers of :class:`GRUCell` over sequences.

    Args:
      input_size: length of the last axis of the input.
      hidden_size: length of the last axis of the hidden state.
      num_layers: how many layers; each gets the hidden states of the one before as its input.
      bias: whether there are biases.
      batch_first: sequences have shape (batch, steps, …) in place of (steps, batch, …).
      dropout: the part of each layer's hidden states, but for the last, that is dropped in training.
      bidirectional: each layer also goes through the sequence from its end; the hidden states stand side by side.

    Attributes:
      weight_ih_l0: shape (3 * hidden, inputs), in the order reset, update, new; and so on for each layer, ending in
        ``_reverse`` for the other direction.
      weight_hh_l0: shape (3 * hidden, hidden).
      bias_ih_l0: shape (3 * hidden,), if there are biases.
      bias_hh_l0: likewise.

    Raises:
      ValueError: on no layer, no hidden unit, or a dropout that is not from 0 to 1.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> out, last = nn.GRU(3, 4, bidirectional=True)(Tensor.ones(7, 5, 3))
      >>> out.shape, last.shape
      ((7, 5, 8), (2, 5, 4))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False,
    ) -> None:  # fmt: skip
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)

    def forward(self, x: Sequences, hx: Tensor | None = None) -> tuple[Sequences, Tensor]:
        """The hidden states of the last layer in each step, and those of all layers after the last step.

        Args:
          x: shape (steps, batch, inputs), or (steps, inputs); or a :class:`~tg_frontend.nn.utils.rnn.PackedSequence`,
            and then the hidden states are one, too.
          hx: the first hidden states, shape (layers times directions, batch, hidden); zeros if not given.

        Raises:
          ValueError: on other shapes.
        """
        out, (last,) = self._run(_gru_step, x, None if hx is None else (hx,), (self.hidden_size,))
        return out, last

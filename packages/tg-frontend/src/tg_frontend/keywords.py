"""Arguments by name: the spellings of other libraries, a word about wrong ones, and errors that name what was called.

A method that a person calls is wrapped once, when its class is made. The wrapper only calls, until that fails. Then,
if the call did not fit the signature, other spellings are tried (``dim`` for ``axis``, ``keepdims`` for ``keepdim``);
and an error from inside is made to begin with the name of the method that was called.
"""

from __future__ import annotations

from functools import update_wrapper
from inspect import unwrap
from sys import stdlib_module_names
from threading import local

from tg_lazy.graph.origin import WRAPPERS

from .plain_numbers import with_integers, with_python_numbers
from .spellings import CONVERTED, FIRST, IGNORED, REFUSED, SELF, SPELLINGS, VARIADIC, is_harmless, reached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import FunctionType
    from typing import Any, ClassVar, TypeVar

    C = TypeVar("C", bound=type)

_TENSORS = ("A", "B", "Self", "Tensor")  # annotations
_TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "str": (str,), "bool": (bool, int)}
_EXPLAINED = (TypeError, ValueError, IndexError, OverflowError)
_CONFUSED = (*_EXPLAINED, AttributeError, KeyError)
_RETRIED = (*_CONFUSED, RuntimeError)
_OURS = frozenset({"tg_frontend", "tg_lazy", "tg_dtype", "tg_shape", "tg_runtime", "tinytg"})
_OPENINGS = ("__init__", "__call__", "forward")
_WRITING = ("assign", "replace", "backward", "realize")  # names without an underscore that write into tensors
_TRUTHS = ("bool", "bool_")  # of Python and numpy
_ROWS_OF_INTEGERS = ("int", "sint", "Sequence[int]", "Sequence[sint]", "tuple[int, ...]", "tuple[sint, ...]", "Axes",
                     "Axis", "Sizes", "Numbers", "Ints")  # fmt: skip
_BY_NAME = 1 << 30  # the place of an argument that is given by name alone
_NESTED = 3  # calls of a method with complex numbers inside of its own formula for them
_LISTED = 8  # elements of a list of arguments that are looked at
_ORDERED = frozenset(
    """
    lt gt le ge max min amax amin aminmax argmax argmin sort argsort msort topk maximum minimum fmax fmin clip clamp
    clamp_min clamp_max median nanmedian quantile nanquantile kthvalue cummax cummin searchsorted bucketize histc
    histogram unique unique_consecutive mode floor ceil round trunc frac floor_divide mod fmod remainder divmod idiv
    """.split()
)
_OPERATORS = frozenset(
    f"__{name}__" for name in "add sub mul truediv mod pow matmul and or xor lshift rshift".split()
)  # which stand for methods


class Beside:
    """Complex numbers, which most functions do not know; the class of tensors says what is done instead.

    Attributes:
      kinds: Python's complex numbers, and classes of complex tensors.
      find: from the name of a method and the arguments that it failed with to what is to be called instead; None if
        these are not complex.
      asked: of this thread, how often each method is being asked for, one call inside of another.
    """

    kinds: ClassVar[set[type]] = {complex}
    find: ClassVar[Callable[[str, tuple[Any, ...], dict[str, Any]], Callable[..., Any] | None] | None] = None
    asked: ClassVar[local] = local()

    @classmethod
    def call(cls, other: Callable[..., Any], label: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What is done instead.

        Raises:
          TypeError: if that asks for the method with complex numbers again and again: they are where none belong.
        """
        deep = vars(cls.asked)
        if deep.get(label, 0) == _NESTED:
            raise no_complex(label)
        deep[label] = deep.get(label, 0) + 1
        try:
            return other(*args, **kwargs)
        finally:
            deep[label] -= 1


class Results:
    """Results that go to tensors which are given by ``out=``.

    Attributes:
      write: calls a function without that argument, and writes what it gives.
    """

    write: ClassVar[Callable[[str, Callable[..., Any], list[str], tuple[Any, ...], dict[str, Any]], Any] | None] = None


def no_complex(label: str) -> TypeError:
    """The error of a function that takes no complex numbers."""
    why = "have no order" if label.rpartition(".")[2].strip("_") in _ORDERED else "are not taken"
    return TypeError(f"{label}: complex numbers {why}; take .real, .imag or .abs() of the tensor")


def _complex_among(values: Iterable[Any]) -> bool:
    """Whether one of the arguments is complex, or a list that begins with something complex."""
    for value in values:
        kind = type(value)
        if kind in Beside.kinds:
            return True
        if kind.__module__ == "numpy" and getattr(getattr(value, "dtype", None), "kind", "") == "c":
            return True
        if kind in (list, tuple) and _complex_among(value[:_LISTED]):
            return True
    return False


def other_names(kind: type) -> dict[str, str]:
    """Public names of a class that are bound to what has another name there, each with that name.

    Example:
      >>> from tg_frontend import Tensor
      >>> other_names(Tensor)["concatenate"]
      'cat'
    """
    names = [name for name in dir(kind) if not name.startswith("_")]
    own = {name: getattr(unwrap(getattr(kind, name)), "__name__", name) for name in names}
    return {name: known for name, known in own.items() if known != name and known in own}


class ArgumentError(ValueError, RuntimeError):
    """A value that a method cannot take: a ``ValueError``, as numpy raises, and a ``RuntimeError``, as PyTorch does."""


class _Signature:
    """The names that a function takes, and how it is called in messages."""

    def __init__(self, function: FunctionType, owner: str, bound: bool) -> None:
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        self.function, self.owner, self.bound = function, owner, bound
        self.name = function.__name__.strip("_") if function.__name__ in _OPERATORS else function.__name__
        self.names = list(code.co_varnames[bound:count])
        self.first = code.co_varnames[0] if count else ""
        self.positional = code.co_argcount
        self.star = code.co_varnames[count] if code.co_flags & 4 else None
        self.anything = bool(code.co_flags & 8)
        told = [function.__annotations__.get(name) for name in code.co_varnames[:count]]
        self.plain = [(at if at < code.co_argcount else _BY_NAME, code.co_varnames[at], *kind)
                      for at, text in enumerate(told) if (kind := _plain(text)) is not None]  # fmt: skip

    def label(self, args: tuple[Any, ...]) -> str:
        name = self.name
        kind: type[Any] = type(args[0]) if args and self.bound else type
        ours = any(base.__name__ == self.owner for base in kind.__mro__)  # not the 2 of Tensor.add(2, 3)
        inherited = ours and not hasattr(kind, "lazydata")  # Parameter's are called Tensor's
        owner = kind.__name__ if inherited else self.owner
        return owner if name in _OPENINGS else f"{owner}.{name}"

    def gives_results(self) -> bool:
        """Whether ``out=`` may ask to write elsewhere what the function gives; it takes no ``out`` itself."""
        writes = self.name.endswith("_") or self.name in _WRITING or self.name in _OPENINGS
        passed_on = self.anything and not self.bound  # what it does not know, to a function that is given
        ours = self.owner == "Tensor" or not (self.bound or passed_on)
        return ours and not (writes or "out" in self.names)

    def ill_suited(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """Which argument is not what the signature says, though the function might compute something with it."""
        for at, name, suits, wanted, optional in self.plain:
            if at < len(args):
                value = args[at]
            elif name in kwargs:
                value = kwargs[name]
            else:
                continue
            if not (suits(value) or (optional and value is None)):
                return f"{name} is {wanted}, got {_shown(value)}"
        return None

    def respelled(self, given: str, taken: Sequence[str] = ()) -> str | None:
        return reached(given, self.names, taken)

    def translated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments by the function's own names; those that mean nothing to it as they are."""
        names = self.names
        filled = max(0, min(len(args), self.positional) - self.bound)
        taken = [*names[:filled], *(name for name in kwargs if name in names)]
        out: dict[str, Any] = {}
        for name, value in kwargs.items():
            if not args and self.bound and name in SELF and name not in names:
                args = (value,)
                continue
            if name not in names and (name in IGNORED or is_harmless(name, value)):
                continue
            known = self.respelled(name, taken)
            if known is None and not args and (name in FIRST or name == self.first):
                if self.bound or names[0] not in kwargs:
                    args = (value,)
                else:  # of what begins with a condition
                    out[names[1]] = value
            elif known is not None:
                out[known] = value
                taken.append(known)
            elif name in CONVERTED and all(part in names for part in CONVERTED[name][0]):
                parts = CONVERTED[name][0]
                if any(part in taken for part in parts):
                    raise TypeError(f"{self.label(args)}() got {parts[0]!r} twice: {name!r} is another name for it")
                taken.extend(parts)
                out.update(zip(parts, CONVERTED[name][1](value), strict=True))
            elif self.star is not None and name in VARIADIC and len(args) <= self.positional:
                args = (*args, *(value if isinstance(value, (tuple, list)) else (value,)))
            else:
                out[name] = value
        return args, out

    def complaint(self, label: str, kwargs: dict[str, Any]) -> str | None:
        """What is wrong with the names that were given; None if it is not the names."""
        unknown = [name for name in kwargs if self.respelled(name) is None]
        if self.anything or not unknown:
            twice = next((name for name in kwargs if self.respelled(name) not in (None, name)), None)
            return twice and f"{label}() got {self.respelled(twice)!r} twice: {twice!r} is another name for it"
        if unknown[0] in REFUSED:
            return f"{label}() takes no {unknown[0]!r}: {REFUSED[unknown[0]]}"
        from difflib import get_close_matches

        spelled = {name: name for name in self.names}
        for name in self.names:
            spelled.update((other, name) for other in SPELLINGS.get(name, ()) if other not in spelled)
        near = get_close_matches(unknown[0], spelled, 1, 0.5)
        hint = f"did you mean {spelled[near[0]]!r}? " if near else ""
        takes = ", ".join([*self.names, *([f"*{self.star}"] if self.star else [])])
        return f"{label}() got an unexpected keyword {unknown[0]!r}; {hint}it takes {takes or 'no arguments'}"

    def mistyped(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """Which argument is of another type than the signature says."""
        if self.star is not None and self.function.__annotations__.get(self.star) in _TENSORS:
            for value in args[self.positional :]:
                if not hasattr(type(value), "lazydata"):
                    return f"{self.star} are tensors, got {_shown(value)}"
        names = self.function.__code__.co_varnames[self.bound : self.positional]
        given = {**dict(zip(names, args[self.bound :], strict=False)), **kwargs}
        for name, value in given.items():
            annotation = str(self.function.__annotations__.get(name, ""))
            wanted = annotation.removesuffix(" | None")
            if value is None and wanted != annotation:
                continue
            if wanted in _TENSORS:
                if not hasattr(type(value), "lazydata"):
                    return f"{name} is a tensor, got {_shown(value)}"
            elif wanted in _TYPES and not hasattr(value, "vmin") and not isinstance(value, _TYPES[wanted]):
                return f"{name} is of type {wanted}, got {_shown(value)}"
        return None


def check_truth(value: Any, name: str, label: str) -> None:
    """Raises an error that names ``label`` if an argument is neither True nor False, nor a tensor of one of them."""
    alone = hasattr(type(value), "lazydata") and value.shape == () and value.dtype.kind == "bool"
    if not (alone or _is_truth(value)):
        raise TypeError(f"{label}: {name} is True or False, got {_shown(value)}")


def _is_truth(value: Any) -> bool:
    if value is True or value is False:
        return True
    return (type(value) is int and value in (0, 1)) or type(value).__name__ in _TRUTHS


def _is_integer(value: Any) -> bool:
    if type(value) is int:
        return True
    if hasattr(type(value), "lazydata"):
        return value.shape == () and value.dtype.kind in ("int", "uint")
    return not isinstance(value, bool) and (hasattr(value, "__index__") or hasattr(value, "vmin"))


def _are_integers(value: Any) -> bool:
    return not isinstance(value, (bool, bytes, bytearray, str, dict, set))


def _plain(annotation: object) -> tuple[Callable[[Any], bool], str, bool] | None:
    """What an annotation asks for that a function may take no notice of: a test, words for it, whether None will do."""
    parts = set(str(annotation).split(" | "))
    optional = "None" in parts
    parts.discard("None")
    if parts == {"bool"}:
        return _is_truth, "True or False", optional
    if parts in ({"int"}, {"sint"}):
        return _is_integer, "an integer", optional
    if parts and all(part in _ROWS_OF_INTEGERS for part in parts):
        return _are_integers, "an integer or several", optional
    return None


def _shown(value: Any) -> str:
    text = f"a tensor of shape {value.shape}" if hasattr(type(value), "lazydata") else repr(value)
    return f"{text if len(text) < 60 else text[:57] + '...'} of type {type(value).__name__}"


def _raised_at(error: BaseException) -> tuple[int, bool]:
    """How many frames below the wrapper's an error was raised, and whether in code of ours."""
    trace, depth = error.__traceback__, 0
    while trace is not None and trace.tb_next is not None:
        trace, depth = trace.tb_next, depth + 1
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return depth, module.partition(".")[0] in _OURS


def _through_others(error: BaseException) -> bool:
    """Whether an error came through code of somebody else, such as a function that was given: that has run already."""
    trace = error.__traceback__
    while trace is not None:
        home = str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if home not in _OURS and home != "numpy" and home not in stdlib_module_names:
            return True
        trace = trace.tb_next
    return False


def _named(said: str, own: str, label: str, written: str) -> str:
    """A message that begins with ``label``.

    Args:
      said: the message.
      own: name of the function.
      label: what the user called.
      written: how Python names the function, by the class that it is written in.
    """
    if said.startswith((f"{label}: ", f"{label}() ")):
        return said
    if said.startswith(f"{written}() "):
        return f"{label}{said[len(written) :]}"
    return f"{label}{said[len(own) :]}" if said.startswith((f"{own}: ", f"{own}() ")) else f"{label}: {said}"


def _explains(error: Exception) -> bool:
    """Whether a message is one of ours, which begin with what was called."""
    return str(error.args[0] if error.args else "").partition(": ")[0].isidentifier()


def _instead(
    signature: _Signature, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> Exception | None:
    """Names the method in an error from inside; an error about a wrong type that did not say so is another one.

    A ``ValueError`` becomes an :class:`ArgumentError`.

    ``said``, an attribute of the error, is its text without such names: of methods that call one another, the one that
    the user called is to be named.
    """
    if not _raised_at(error)[1]:
        return None
    label, said = signature.label(args), getattr(error, "said", None)
    if said is None and not _explains(error):
        wrong = signature.mistyped(args, kwargs)
        if wrong is not None:
            instead = TypeError(f"{label}: {wrong}")
            instead.said = wrong  # type: ignore[attr-defined]
            return instead
    if type(error) is AttributeError and said is None:
        # something was given that is not of the kind that the method works with
        wrong = f"arguments of another kind are wanted: {error}"
        instead = TypeError(f"{label}: {wrong}")
        instead.said = wrong  # type: ignore[attr-defined]
        return instead
    if type(error) not in (*_EXPLAINED, ArgumentError) or len(error.args) != 1 or not isinstance(error.args[0], str):
        return None
    if said is None:
        said = error.said = error.args[0]  # type: ignore[attr-defined]
    named = _named(said, signature.name, label, signature.function.__qualname__)
    if type(error) is not ValueError:
        error.args = (named,)
        return None
    both = ArgumentError(named)
    both.said = said  # type: ignore[attr-defined]
    return both.with_traceback(error.__traceback__)


def checked(function: Any, owner: str, bound: bool = True, numbers: str = "any") -> Any:
    """``function`` with other spellings of its arguments, and with errors that name it.

    Args:
      function: a method, as it stands in its class.
      owner: name of the class in messages.
      bound: whether the first argument is the object or the class.
      numbers: ``"any"``; ``"real"`` where complex arguments are refused; ``"both"`` where another function takes those,
        which :class:`Beside` finds when this one failed.
    """
    function.__qualname__ = f"{owner}.{function.__name__}"
    signature = _Signature(function, owner, bound)
    real, both = numbers == "real", numbers == "both"
    plain = bool(signature.plain)
    first = min((at for at, *_ in signature.plain), default=_BY_NAME)
    most = 0 if real else first  # arguments that need no look, if none has a name
    gives = signature.gives_results()
    kinds = Beside.kinds

    def method(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) > most or (args and type(args[0]) in kinds):
            if kwargs and gives and kwargs.get("out") is not None and Results.write:
                return Results.write(signature.label(args), method, signature.names, args, kwargs)
            if both and args and type(args[0]) in kinds and Beside.find:  # Tensor.conj(z)
                other = Beside.find(function.__name__, args, kwargs)
                if other:
                    return other(*args, **kwargs)
            if real and _complex_among((*args, *kwargs.values()) if kwargs else args):
                raise no_complex(signature.label(args))
            if plain and (kwargs or len(args) > first):
                wrong = signature.ill_suited(args, kwargs)
                if wrong is not None:
                    raise TypeError(f"{signature.label(args)}: {wrong}")
        try:
            return function(*args, **kwargs)
        except _CONFUSED as error:
            simpler = with_python_numbers(args, kwargs)  # for sizes, axes and bounds
            simpler = None if simpler and _through_others(error) else simpler
            if not simpler and not _through_others(error):  # where an integer is wanted, a tensor of one is one
                try:
                    integers = with_integers(args, kwargs, bound)
                    if integers:
                        return method(*integers[0], **integers[1])
                except (ValueError, IndexError, OverflowError) as second:
                    if isinstance(error, (TypeError, AttributeError)):  # an integer was wanted, but not this one
                        raise second from None
                except _RETRIED:  # it was not about that
                    pass
            other = Beside.find(function.__name__, args, kwargs) if both and Beside.find and not simpler else None
            if not other and not simpler:
                known = not (kwargs and isinstance(error, TypeError) and _raised_at(error)[0] == 0)
                if not known:
                    positional, named = signature.translated(args, kwargs)
                    complaint = signature.complaint(signature.label(args), named)
                    known = complaint is None and named == kwargs
                if known:  # it is not about the names of arguments
                    instead = _instead(signature, args, kwargs, error)
                    if instead is None:
                        raise
                    if isinstance(instead, ArgumentError):
                        raise instead from error.__cause__
                    raise instead from error
        if simpler:
            return method(*simpler[0], **simpler[1])
        if other:
            try:
                return Beside.call(other, signature.label(args), args, kwargs)
            except _EXPLAINED as error:  # which names what is done instead
                instead = _instead(signature, args, kwargs, error)
                if instead is None:
                    raise
                raise instead from error.__cause__
        if complaint is not None:
            raise TypeError(complaint)
        return method(*positional, **named)

    WRAPPERS.add(method.__code__)
    return update_wrapper(method, function)


def public(kind: C, owner: str | None = None) -> C:
    """A class whose public methods are :func:`checked`, those that it inherits included.

    Those of a class that says ``_as_written = True`` are inherited as they are.

    An attribute ``_numbers`` of the class says which numbers they take: a word for all, see :func:`checked`, or one for
    each name, ``"real"`` where there is none.
    """
    taken = getattr(kind, "_numbers", {})
    done: set[str] = set()
    for floor in kind.__mro__[:-1]:
        if vars(floor).get("_as_written", False):
            done.update(vars(floor))
            continue
        for key, value in list(vars(floor).items()):
            if key in done or (key.startswith("_") and key not in _OPENINGS and key not in _OPERATORS):
                continue
            done.add(key)
            wrap = type(value) if isinstance(value, (classmethod, staticmethod)) else None
            function = value.__func__ if wrap else value
            if hasattr(function, "__code__") and not hasattr(function, "__wrapped__"):
                numbers = taken if isinstance(taken, str) else taken.get(function.__name__, "real")
                method = checked(function, owner or kind.__name__, wrap is not staticmethod, numbers)
                setattr(kind, key, wrap(method) if wrap else method)
    return kind


def offered(module: dict[str, Any], names: Sequence[str], owner: str, numbers: dict[str, str] | None = None) -> None:
    """Makes functions of a module :func:`checked`.

    Args:
      module: its globals.
      names: of the functions.
      owner: name of the module in messages.
      numbers: by name, which numbers a function takes, if not only real ones.
    """
    for name in names:
        module[name] = checked(module[name], owner, False, (numbers or {}).get(name, "real"))

"""The Objective-C runtime through ctypes: messages whose types are declared, classes, strings, autorelease pools.

A message is a call of ``objc_msgSend`` as a function of the types of that very method, so each selector is declared
with them, in the runtime's own encoding: ``"@QQ"`` takes two 64-bit integers and gives an object. On the first use of
a selector the declaration is compared with what the runtime knows of the method: a method that this system does not
have, or has with other types, is told as an error instead of ending the process.

Objects are addresses. As Objective-C has it, an object that comes from ``new…``, ``alloc`` or ``copy`` is the
caller's, who sends ``release``; any other lives until the autorelease pool around the call is popped.

Source: "Objective-C Runtime" and "Objective-C Runtime Programming Guide", type encodings (Apple); the pool functions:
"Objective-C Automatic Reference Counting" (clang).
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int64, c_uint64, c_void_p
from typing import Any

from ...errors import DeviceError


class Size(ctypes.Structure):
    """``MTLSize``."""

    _fields_ = [("width", c_uint64), ("height", c_uint64), ("depth", c_uint64)]


class Range(ctypes.Structure):
    """``NSRange``."""

    _fields_ = [("location", c_uint64), ("length", c_uint64)]


class Version(ctypes.Structure):
    """``NSOperatingSystemVersion``."""

    _fields_ = [("major", c_int64), ("minor", c_int64), ("patch", c_int64)]


_TYPES: dict[str, Any] = {
    "v": None, "@": c_void_p, "^v": c_void_p, "^@": POINTER(c_void_p), "r*": c_char_p, "Q": c_uint64, "q": c_int64,
    "d": c_double, "B": c_bool, "{Size}": Size, "{Range}": Range, "{Version}": Version,
}  # fmt: skip
_DECLARED = re.compile("|".join(re.escape(code) for code in sorted(_TYPES, key=len, reverse=True)))
# What the runtime says: qualifiers, then a structure, a block, a pointer to anything, or one letter; then an offset.
_ENCODED = re.compile(r"[rnNoORVA]*(\{(?:[^{}]|\{[^{}]*\})*\}|\^+\{[^}]*\}|\^+.|@\?|@\"[^\"]*\"|.)-?\d*")
_RUNTIME: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "objc_getClass": (c_void_p, (c_char_p,)),
    "sel_registerName": (c_void_p, (c_char_p,)),
    "object_getClass": (c_void_p, (c_void_p,)),
    "class_getName": (c_char_p, (c_void_p,)),
    "class_getInstanceMethod": (c_void_p, (c_void_p, c_void_p)),
    "method_getTypeEncoding": (c_char_p, (c_void_p,)),
    "objc_autoreleasePoolPush": (c_void_p, ()),
    "objc_autoreleasePoolPop": (None, (c_void_p,)),
}
_TEXT: Mapping[str, str] = {
    "UTF8String": "r*", "stringWithUTF8String:": "@r*", "retain": "@", "release": "v", "localizedDescription": "@",
    "code": "q", "respondsToSelector:": "B^v",
}  # fmt: skip


def shape(encoding: str, declared: bool) -> tuple[str, ...]:
    """How each part of an encoding is passed: as a word, a byte, a double, a structure of so many words, or not.

    Args:
      encoding: ours, or the runtime's, which also has the receiver, the selector, and offsets.
      declared: whether it is ours.

    >>> shape("@QB", True) == shape("@32@0:8Q16c24", False)
    True
    """
    if declared:
        words = {"{Size}": "3", "{Range}": "2", "{Version}": "3"}
        kinds = {"v": "void", "d": "double", "B": "byte"}
        return tuple(words.get(code) or kinds.get(code, "word") for code in _DECLARED.findall(encoding))
    found = [match[1] for match in _ENCODED.finditer(encoding)]
    parts = found[:1] + found[3:]
    kinds = {"v": "void", "d": "double", "B": "byte", "c": "byte", "C": "byte"}
    return tuple(
        str(len(re.findall("[QqLl]", part.partition("=")[2]))) if part.startswith("{") else kinds.get(part, "word")
        for part in parts
    )


class ObjC:
    """The runtime.

    Args:
      find: the function of a name, without declared types; AttributeError if there is none.
      messages: the selectors that will be sent and their types.

    Raises:
      DeviceError: if a function of the runtime is missing.
    """

    def __init__(self, find: Callable[[str], Any], messages: Mapping[str, str]) -> None:
        self._functions: dict[str, Any] = {}
        for name, (result, arguments) in _RUNTIME.items():
            try:
                function = find(name)
            except AttributeError:
                raise DeviceError(f"the Objective-C runtime here has no {name}") from None
            function.restype, function.argtypes = result, arguments
            self._functions[name] = function
        address = ctypes.cast(find("objc_msgSend"), c_void_p).value
        assert address is not None
        self._send = address
        self.messages = {**_TEXT, **messages}
        self._bound: dict[str, tuple[Any, int]] = {}
        self._classes: dict[str, int] = {}

    def send(self, receiver: int | None, selector: str, *arguments: object) -> Any:
        """Sends a message.

        Args:
          receiver: an object or a class; of None, as everywhere in Objective-C, nothing comes back.
          selector: one of those that are declared.

        Raises:
          DeviceError: if the receiver has no such method, or it has other types; asked on the first use.
        """
        bound = self._bound.get(selector)
        if bound is None:
            bound = self._bind(receiver, selector)
        return bound[0](receiver, bound[1], *arguments)

    def _bind(self, receiver: int | None, selector: str) -> tuple[Any, int]:
        encoding = self.messages[selector]
        handle: int = self._functions["sel_registerName"](selector.encode())
        if receiver:
            self._compare(receiver, selector, handle, encoding)
        result, *arguments = (_TYPES[code] for code in _DECLARED.findall(encoding))
        function = ctypes.CFUNCTYPE(result, c_void_p, c_void_p, *arguments)(self._send)
        if receiver:
            self._bound[selector] = function, handle
        return function, handle

    def _compare(self, receiver: int, selector: str, handle: int, encoding: str) -> None:
        cls = self._functions["object_getClass"](receiver)
        method = self._functions["class_getInstanceMethod"](cls, handle)
        name = self._functions["class_getName"](cls).decode()
        if not method:
            # A stand-in may answer for another object.
            if selector != "respondsToSelector:" and self.send(receiver, "respondsToSelector:", handle):
                return
            raise DeviceError(f"Metal: {name} has no method {selector} on this system, which may be too old")
        known = self._functions["method_getTypeEncoding"](method).decode()
        if shape(known, declared=False) != shape(encoding, declared=True):
            raise DeviceError(f"Metal: {name} has a method {selector} of type {known}; {encoding} was expected")

    def responds(self, receiver: int, selector: str) -> bool:
        """Whether an object has a method."""
        handle = self._functions["sel_registerName"](selector.encode())
        return bool(self.send(receiver, "respondsToSelector:", handle))

    def cls(self, name: str) -> int:
        """A class.

        Raises:
          DeviceError: if there is none of that name.
        """
        found = self._classes.get(name)
        if found is None:
            found = self._functions["objc_getClass"](name.encode())
            if not found:
                raise DeviceError(f"Metal: there is no class {name} on this system, which may be too old")
            self._classes[name] = found
        return found

    def new(self, name: str) -> int:
        """A new object of a class; the caller's, until ``release``."""
        found: int = self.send(self.cls(name), "new")
        return found

    @contextmanager
    def pool(self) -> Iterator[None]:
        """Objects that nobody retains live until the end of the block."""
        token = self._functions["objc_autoreleasePoolPush"]()
        try:
            yield
        finally:
            self._functions["objc_autoreleasePoolPop"](token)

    def string(self, text: str) -> int:
        """An ``NSString``, which lives until the pool is popped."""
        found: int = self.send(self.cls("NSString"), "stringWithUTF8String:", text.encode())
        return found

    def text(self, string: int | None) -> str:
        """What an ``NSString`` says."""
        raw: bytes | None = self.send(string, "UTF8String") if string else None
        return "" if raw is None else raw.decode(errors="replace")

    def reason(self, error: int | None) -> str:
        """What an ``NSError`` says; empty if there is none."""
        return self.text(self.send(error, "localizedDescription")) if error else ""

"""The instructions of a pickle, carried out on plain data: nothing that it names is ever looked up.

A pickle is a program for a small stack machine. Python's own carries out whatever it says: it
calls what is named, and sets the attributes of what it finds on the stack. This one knows the
instructions that make data. A name is a mark on the stack and no object; the caller says what a few
of them make of their arguments.
"""

import codecs
import io
import pickletools
from collections.abc import Callable, Hashable, Mapping, Sized
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

MOST_STEPS = 2**25
"""Instructions of a pickle. Python carries out about a million a second."""
LARGEST_KEY = 2**60
"""Larger whole numbers can be chosen so that all fall into one place of a dictionary."""

_INSTRUCTIONS = {instruction.code: instruction for instruction in pickletools.opcodes}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
}
_EMPTY: Mapping[str, Callable[[], Any]] = {
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_LONGEST_KEY = 16
_ATOMS = (str, bytes, int, float, bool, type(None))


@dataclass(frozen=True)
class Name:
    """What a pickle calls something in a module; it is not looked for."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@runtime_checkable
class TakesState(Protocol):
    """What a name has made, if it is completed later."""

    def take_state(self, state: Any) -> None: ...


class RefusedNameError(Exception):
    """A pickle names something that makes no data."""


Makers = Mapping[tuple[str, str], Callable[..., Any] | None]
"""By module and name, what it makes of its arguments; None for a name that is an argument only."""


def run_pickle(content: bytes, makers: Makers) -> Any:
    """The data that a pickle makes. What is wrong with one is a ValueError or the like."""
    return _Machine(content, makers).run()


def check_key(key: Any) -> Any:
    """A key of a dictionary or member of a set, of a kind whose hash is quickly found."""
    parts: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)
    if len(parts) > _LONGEST_KEY:
        raise ValueError(f"a key of {len(parts)} parts")
    for part in parts:
        # Tuples of tuples share their parts, and are hashed again for every time they occur.
        if isinstance(part, _ATOMS) and not (type(part) is int and abs(part) > LARGEST_KEY):
            continue
        if isinstance(part, Hashable) and isinstance(part, TakesState):
            continue  # An element of an array, by which some programs key.
        raise ValueError(f"a key that is a {type(part).__name__} or too large a number")
    return key


class _Machine:
    def __init__(self, content: bytes, makers: Makers):
        self._file = io.BytesIO(content)
        self._makers = makers
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []  # What was on the stack at each mark.
        self._memo: dict[int, Any] = {}
        # What makers may be given together: a pickle can hand one long argument to many.
        self._left = 4 * len(content) + 2**16

    def run(self) -> Any:
        for _ in range(MOST_STEPS):
            code = self._file.read(1).decode("latin1")
            if code not in _INSTRUCTIONS:
                raise ValueError("it breaks off" if not code else f"no instruction {code!r}")
            instruction = _INSTRUCTIONS[code]
            argument = self._argument(instruction)
            if instruction.name == "STOP":
                return self._stack.pop()
            self._do(instruction.name, argument)
        raise ValueError(f"it has more than {MOST_STEPS} instructions")

    def _argument(self, instruction: pickletools.OpcodeInfo) -> Any:
        if instruction.arg is None:
            return None
        if instruction.name == "STRING":  # Of Python 2; pickletools takes ASCII only.
            line = self._file.readline().strip()
            if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
                raise ValueError("a string without quotes")
            return codecs.escape_decode(line[1:-1])[0].decode("latin1")  # pyright: ignore[reportAttributeAccessIssue]
        return instruction.arg.reader(self._file)

    def _do(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in _TUPLES:
            count = _TUPLES[name]
            taken = [stack.pop() for _ in range(count)]
            stack.append(tuple(reversed(taken)))
        elif name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
            self._memo[len(self._memo) if name == "MEMOIZE" else argument] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        else:
            carry_out = getattr(self, f"_{name.lower()}", None)
            if carry_out is None:
                raise self._refused(name, argument)
            carry_out(argument)

    def _refused(self, name: str, argument: Any) -> Exception:
        if name in ("INST", "OBJ", "NEWOBJ", "NEWOBJ_EX"):
            made = str(argument).replace(" ", ".") if name == "INST" else "an object"
            return RefusedNameError(self._named(made))
        return ValueError(f"the instruction {name}, which makes no data")

    def _named(self, otherwise: str) -> str:
        """The name nearest to the top of the stack, for a message."""
        everything = [item for part in (*self._below, self._stack) for item in part]
        found = [item for item in reversed(everything) if isinstance(item, Name)]
        return str(found[0]) if found else otherwise

    def _since_mark(self) -> list[Any]:
        items = self._stack
        self._stack = self._below.pop()
        return items

    # One method an instruction, called by its name.

    def _proto(self, argument: Any) -> None: ...

    def _frame(self, argument: Any) -> None: ...

    def _bytearray8(self, argument: Any) -> None:
        self._stack.append(bytes(argument))

    def _mark(self, argument: Any) -> None:
        self._below.append(self._stack)
        self._stack = []

    def _pop(self, argument: Any) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._since_mark()

    def _pop_mark(self, argument: Any) -> None:
        self._since_mark()

    def _dup(self, argument: Any) -> None:
        self._stack.append(self._stack[-1])

    def _list(self, argument: Any) -> None:
        items = self._since_mark()
        self._stack.append(items)

    def _tuple(self, argument: Any) -> None:
        items = tuple(self._since_mark())
        self._stack.append(items)

    def _frozenset(self, argument: Any) -> None:
        items = frozenset(map(check_key, self._since_mark()))
        self._stack.append(items)

    def _dict(self, argument: Any) -> None:
        items = self._since_mark()
        self._stack.append({})
        self._set(items)

    def _append(self, argument: Any) -> None:
        self._extend([self._stack.pop()])

    def _appends(self, argument: Any) -> None:
        self._extend(self._since_mark())

    def _additems(self, argument: Any) -> None:
        items = self._since_mark()
        if not isinstance(self._stack[-1], set):
            raise ValueError("members for something that is no set")
        self._stack[-1].update(map(check_key, items))

    def _setitem(self, argument: Any) -> None:
        value = self._stack.pop()
        self._set([self._stack.pop(), value])

    def _setitems(self, argument: Any) -> None:
        self._set(self._since_mark())

    def _extend(self, items: list[Any]) -> None:
        if not isinstance(self._stack[-1], list):
            raise ValueError("items for something that is no list")
        self._stack[-1].extend(items)

    def _set(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise ValueError("keys and values for something that is no dictionary")
        target.update(zip(map(check_key, items[::2]), items[1::2], strict=True))

    def _global(self, argument: Any) -> None:
        module, _, name = str(argument).partition(" ")
        self._push_name(Name(module, name))

    def _stack_global(self, argument: Any) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise ValueError("a name that is not text")
        self._push_name(Name(module, name))

    def _push_name(self, name: Name) -> None:
        if (name.module, name.name) not in self._makers:
            raise RefusedNameError(str(name))
        self._stack.append(name)

    def _reduce(self, argument: Any) -> None:
        arguments, name = self._stack.pop(), self._stack.pop()
        maker = self._makers[name.module, name.name] if isinstance(name, Name) else None
        if maker is None or not isinstance(arguments, tuple):
            raise RefusedNameError(str(name) if isinstance(name, Name) else "a call of data")
        self._left -= sum(len(item) for item in arguments if isinstance(item, Sized))
        if self._left < 0:
            raise ValueError("it makes more of its data than it holds")
        self._stack.append(maker(*arguments))

    def _build(self, argument: Any) -> None:
        state, made = self._stack.pop(), self._stack[-1]
        if not isinstance(made, TakesState):
            raise RefusedNameError(
                f"attributes of {made if isinstance(made, Name) else type(made).__name__}"
            )
        made.take_state(state)

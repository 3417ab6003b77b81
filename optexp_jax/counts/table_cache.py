"""What is made once a table, or once a neuron's counts, and used by every search over it.

This is the one cache of the package that outlives a call. Decorate a function that makes
something of a table with `per_table`, or of a table and a neuron with `per_neuron`:

    @per_table
    def pair_index(table: ConceptTable) -> PairIndex:
        return PairIndex(table.signatures)

Further arguments, which must be hashable, tell values of one table apart. `per_process` is for
what is done once for all tables of a kind, such as compiling programs of its sizes.

Lifetime: a value lives as long as its table (or its counts) and is dropped with it; there is no
other way to drop it, and no size limit. Tables and counts never change, so values never go stale.
They are told apart by identity: two equal tables have two values. A value must not hold its table
strongly, or neither could ever go; where it needs the table later, it holds a `weakref.proxy`.

Threads: any number may ask at once. The first makes the value, the others wait and get the same
object; different tables and different functions do not wait for each other. If making it raises,
nothing is kept, and the next one to ask tries again. A device array lies on the device that was the
default of the thread that made it, so threads with devices of their own open tables of their own.
"""

import functools
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Concatenate, Generic, ParamSpec, TypeVar

from optexp_jax.concepts.table import ConceptTable
from optexp_jax.counts.neuron import NeuronCounts

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")
Kind = TypeVar("Kind", bound=Hashable)


def per_table(
    make: Callable[Concatenate[ConceptTable, P], V],
) -> Callable[Concatenate[ConceptTable, P], V]:
    """Make it at the first call for a table; later calls get the same object."""
    cache = _WeakCache[ConceptTable, V]()

    @functools.wraps(make)
    def kept(table: ConceptTable, *args: P.args, **kwargs: P.kwargs) -> V:
        which = (args, tuple(sorted(kwargs.items())))
        return cache.get(table, lambda: make(table, *args, **kwargs), which)

    return kept


def per_process(
    work: Callable[Concatenate[Kind, P], bool],
) -> Callable[Concatenate[Kind, P], None]:
    """Do it at the first call for a kind, and at later ones until it says that all is done."""
    done: set[Kind] = set()

    @functools.wraps(work)
    def once(kind: Kind, *args: P.args, **kwargs: P.kwargs) -> None:
        if kind not in done and work(kind, *args, **kwargs):
            done.add(kind)

    return once


def per_neuron(
    make: Callable[[ConceptTable, NeuronCounts], V],
) -> Callable[[ConceptTable, NeuronCounts], V]:
    """Make it at the first call for a neuron's counts, which belong to one table."""
    cache = _WeakCache[NeuronCounts, V]()

    @functools.wraps(make)
    def kept(table: ConceptTable, neuron: NeuronCounts) -> V:
        return cache.get(neuron, lambda: make(table, neuron))

    return kept


class _Entry(Generic[V]):
    """A value, once it is made. The lock lets a function that asks for itself fail, not hang."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.made: list[V] = []


class _WeakCache(Generic[K, V]):
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: weakref.WeakKeyDictionary[K, dict[Hashable, _Entry[V]]] = (
            weakref.WeakKeyDictionary()
        )

    def get(self, key: K, make: Callable[[], V], which: Hashable = None) -> V:
        entry = self._entries.get(key, {}).get(which)
        if entry is None:
            with self._lock:
                entry = self._entries.setdefault(key, {}).setdefault(which, _Entry())
        if not entry.made:
            with entry.lock:
                if not entry.made:
                    entry.made.append(make())
        return entry.made[0]

"""Counts what a piece of work costs, without a clock: the same on every machine, however busy it is."""

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median_low
from types import FrameType
from typing import Any

ROUNDS = 5
"""What is rare, such as a list that has to move as it grows, is paid by all rounds together: so the median counts."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one round costs.

    ``instructions`` of Python's interpreter show loops; what C does in one go they do not show. ``bytes`` are the most
    memory that was in use at once beside what was in use before: they show copies of whatever is large.
    """

    instructions: int
    bytes: int


def measure(work: Callable[[], object]) -> Cost:
    """Return what it costs to do this once, in the middle of several times; twice it is done without being counted."""
    for _ in range(2):
        work()
    instructions = median_low(_instructions(work) for _ in range(ROUNDS))
    with _collector_off():
        return Cost(instructions, median_low(_bytes(work) for _ in range(ROUNDS)))


def left_behind(work: Callable[[], object], times: int) -> int:
    """Return how many more blocks of memory are in use after doing this so many times."""
    work()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(times):
        work()
    gc.collect()
    return sys.getallocatedblocks() - before


def _instructions(work: Callable[[], object]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@contextmanager
def _collector_off() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def held_by(make: Callable[[], object]) -> int:
    """Return how many bytes of memory what is made here holds."""
    make()
    gc.collect()
    tracemalloc.start()
    try:
        made = make()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        del made
        return held
    finally:
        tracemalloc.stop()

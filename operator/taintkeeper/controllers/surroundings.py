"""What the controllers are given to work with."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from prometheus_client import CollectorRegistry

from taintkeeper.cluster.clock import SteadyClock
from taintkeeper.cluster.custom_writer import CustomWriter
from taintkeeper.cluster.events import Notice
from taintkeeper.cluster.writer import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every controller works with.

    ``send`` takes events for people, ``registry`` the metrics. ``crashed`` is told of a fault of our own, ``stalled``
    for how many seconds the process stood still.
    """

    writer: Writer
    custom_writer: CustomWriter
    send: Callable[[Notice], None]
    registry: CollectorRegistry
    clock: SteadyClock
    random: Random
    crashed: Callable[[BaseException], None]
    stalled: Callable[[float], None]

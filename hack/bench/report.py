"""What was measured, as a table for people and as JSON for programs."""

import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from testbed.real.build import kubernetes_version

OURS = "Taintkeeper"


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one contestant: what, with its unit, to how much."""

    name: str
    numbers: Mapping[str, float]


@dataclass(slots=True)
class Report:
    """The rows of one run. ``notes`` are what a reader has to know beside them."""

    title: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def table(self) -> str:
        """Return a line for each number, a column for each contestant, and how ours compares with each other one."""
        columns = ["", *(row.name for row in self.rows), *(f"{OURS} : {row.name}" for row in self._others())]
        lines = [columns, *([name, *self._values(name), *self._ratios(name)] for name in self._names())]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([self.title, *text, *self.notes])

    def write(self, path: Path) -> None:
        """Write the numbers, the command and the machine to this file."""
        path.write_text(json.dumps(self._content(), indent=2) + "\n")

    def _content(self) -> dict[str, object]:
        return {
            "title": self.title,
            "command": shlex.join(sys.orig_argv),
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": {
                "cores": os.cpu_count(),
                "load": os.getloadavg(),
                "python": platform.python_version(),
                "kubernetes": kubernetes_version(),
            },
            "results": {row.name: dict(row.numbers) for row in self.rows},
            "ratios": {row.name: self._ratios_to(row) for row in self._others()},
            "notes": self.notes,
        }

    def _names(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row.numbers))

    def _others(self) -> list[Row]:
        return [row for row in self.rows if row.name != OURS] if self._ours() else []

    def _ours(self) -> Mapping[str, float]:
        return next((row.numbers for row in self.rows if row.name == OURS), {})

    def _values(self, name: str) -> list[str]:
        return [_short(row.numbers.get(name)) for row in self.rows]

    def _ratios(self, name: str) -> list[str]:
        return [_short(self._ratios_to(row).get(name)) for row in self._others()]

    def _ratios_to(self, row: Row) -> dict[str, float]:
        both = {name: (ours, row.numbers.get(name)) for name, ours in self._ours().items()}
        return {name: ours / theirs for name, (ours, theirs) in both.items() if theirs}


def quantiles(name: str, seconds: Sequence[float]) -> dict[str, float]:
    """Return the median, the 99th percentile and the largest of some times, in milliseconds."""
    ordered = sorted(seconds)
    at = {"p50": len(ordered) // 2, "p99": min(len(ordered) - 1, len(ordered) * 99 // 100), "max": -1}
    return {f"{name} {which}, ms": 1_000.0 * ordered[place] for which, place in at.items()} if ordered else {}


def _short(number: float | None) -> str:
    if number is None:
        return "-"
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"

"""How the story looks on a terminal: one line for each thing that happens, with the second it happened in."""

import os
import shutil
import sys
import textwrap
from enum import Enum

from demo.clock import Clock

WIDTH_WHEN_PIPED = 110
NARROWEST, WIDEST = 80, 120
TIME_COLUMNS = 7
WHO_COLUMNS = 20


class Tone(Enum):
    """What kind of thing a line tells, as the terminal's code for its colour."""

    PLAIN = ""
    HEADING = "1"
    ASIDE = "2"
    BAD = "1;31"
    LEAVES = "31"
    GOOD = "32"
    TAINT = "33"
    HELD = "35"
    BY_HAND = "36"


class Timeline:
    """Prints lines to standard output; in colour only for somebody who looks at a terminal and did not say NO_COLOR."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        on_terminal = sys.stdout.isatty()
        self._colour = on_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        columns = shutil.get_terminal_size().columns if on_terminal else WIDTH_WHEN_PIPED
        self._width = min(max(columns, NARROWEST), WIDEST)

    def say(self, text: str = "", tone: Tone = Tone.PLAIN, *, hanging: int = 0) -> None:
        """Print text that belongs to no moment, wrapped; all lines but the first are indented by ``hanging``."""
        lines = textwrap.wrap(text, self._width, subsequent_indent=" " * hanging, break_on_hyphens=False) or [""]
        for line in lines:
            print(f"\x1b[{tone.value}m{line}\x1b[0m" if self._colour and tone.value else line, flush=True)

    def scene(self, title: str) -> None:
        """Begin a new part of the story."""
        self.say()
        self.say(title, Tone.HEADING)

    def happened(self, who: str, what: str, tone: Tone = Tone.PLAIN) -> None:
        """Tell of something that happens now."""
        self._row(f"{self._clock.now():{TIME_COLUMNS}.2f}", who, what, tone)

    def expect(self, who: str, what: str) -> None:
        """Tell of something that should happen."""
        self._row("", who, what, Tone.ASIDE)

    def _row(self, when: str, who: str, what: str, tone: Tone) -> None:
        start = TIME_COLUMNS + WHO_COLUMNS + 2
        self.say(f"{when:{TIME_COLUMNS}} {who:{WHO_COLUMNS}} {what}", tone, hanging=start)

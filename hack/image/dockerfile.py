"""Reads the part of Dockerfile syntax that ours uses; what it does not know is an error, not a guess."""

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "Dockerfile"
KNOWN = frozenset({"CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "LABEL", "RUN", "USER", "WORKDIR"})


class DockerfileError(Exception):
    """The Dockerfile has something that this reader does not know."""


@dataclass(frozen=True, slots=True)
class Copy:
    """What a COPY line copies: from which stage (None: from the repository), what, where to."""

    stage: str | None
    sources: tuple[str, ...]
    target: str


@dataclass(frozen=True, slots=True)
class Stage:
    """A FROM and all lines up to the next one."""

    image: str
    steps: list[tuple[str, str]] = field(default_factory=list)
    """Keyword and the rest of each line, in order."""

    def values(self, keyword: str) -> list[str]:
        """Return the rest of each line with this keyword."""
        return [rest for word, rest in self.steps if word == keyword]

    def environment(self) -> dict[str, str]:
        """Return what the ENV lines set."""
        pairs = (pair for line in self.values("ENV") for pair in shlex.split(line))
        return dict(pair.split("=", 1) for pair in pairs)

    def copies(self) -> list[Copy]:
        """Return what the COPY lines copy."""
        return [parse_copy(line) for line in self.values("COPY")]

    def command(self) -> list[str]:
        """Return what runs when the image is started."""
        return [word for keyword in ("ENTRYPOINT", "CMD") for line in self.values(keyword) for word in json.loads(line)]


def parse_dockerfile(text: str) -> list[Stage]:
    """Return the stages in order.

    Raises:
        DockerfileError: there is an unknown keyword, or a line before the first FROM.
    """
    stages: list[Stage] = []
    without_comments = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    for line in without_comments.replace("\\\n", " ").splitlines():
        keyword, _, rest = line.strip().partition(" ")
        if keyword == "FROM":
            stages.append(Stage(rest.split()[0]))
        elif keyword in KNOWN and stages:
            stages[-1].steps.append((keyword, rest.strip()))
        elif keyword:
            raise DockerfileError(f"cannot read {line!r}")
    return stages


def parse_copy(rest: str) -> Copy:
    """Return what the rest of a COPY line says."""
    words = shlex.split(rest)
    stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else None
    return Copy(stage, tuple(words[:-1]), words[-1])

"""Log lines, for people or for machines."""

import json
import logging
from collections.abc import Iterator

import pytest

from taintkeeper.logs import set_up_logging

OURS = logging.getLogger("taintkeeper.test")
Capture = pytest.CaptureFixture[str]
KOPF = logging.getLogger("kopf.test")


@pytest.fixture(autouse=True)
def loggers_as_they_were() -> Iterator[None]:
    """Put back what the set-up changes for the whole process."""
    names = (None, "taintkeeper", "kopf", "aiohttp.access", "asyncio")
    levels = {name: logging.getLogger(name).level for name in names}
    handlers = logging.getLogger().handlers[:]
    yield
    logging.getLogger().handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_text_is_for_people(capsys: Capture) -> None:
    set_up_logging("text", verbose=False, dry_run=False)
    OURS.info("pod %s evicted", "default/p1")
    assert capsys.readouterr().err.endswith(" INFO    taintkeeper.test: pod default/p1 evicted\n")


def test_json_is_for_machines_a_line_an_object(capsys: Capture) -> None:
    set_up_logging("json", verbose=False, dry_run=False)
    OURS.error("it failed", exc_info=ValueError("two\nlines"))
    OURS.warning("pod %s\nstays", "default/p1")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["level"], first["message"]) == ("ERROR", "it failed")
    assert "ValueError: two\nlines" in first["exc_info"]
    assert second.pop("time")
    assert second == {"level": "WARNING", "logger": "taintkeeper.test", "message": "pod default/p1\nstays"}


@pytest.mark.parametrize(("verbose", "lines"), [(False, ["told"]), (True, ["detail", "told"])])
def test_details_are_told_when_asked_for(capsys: Capture, verbose: bool, lines: list[str]) -> None:
    set_up_logging("text", verbose=verbose, dry_run=False)
    OURS.debug("detail")
    OURS.info("told")
    assert [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()] == lines


@pytest.mark.parametrize("verbose", [False, True])
def test_kopf_tells_only_what_is_wrong(capsys: Capture, verbose: bool) -> None:
    set_up_logging("text", verbose=verbose, dry_run=False)
    KOPF.info("Initial authentication has been initiated.")
    KOPF.warning("trouble")
    assert [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()] == ["trouble"]


def test_setting_up_twice_writes_once(capsys: Capture) -> None:
    set_up_logging("text", verbose=False, dry_run=False)
    set_up_logging("text", verbose=False, dry_run=False)
    OURS.info("told")
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_every_line_of_a_dry_run_says_so(capsys: Capture) -> None:
    set_up_logging("text", verbose=False, dry_run=True)
    OURS.info("pod %s evicted", "default/p1")
    set_up_logging("json", verbose=False, dry_run=True)
    OURS.info("pod %s evicted", "default/p1")
    text, json_line = capsys.readouterr().err.splitlines()
    assert text.endswith(" taintkeeper.test: (dry run) pod default/p1 evicted")
    assert json.loads(json_line)["dry_run"] is True

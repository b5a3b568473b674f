"""The command: what it says, and with which code it ends."""

import asyncio
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, cast

import kopf
import pytest

from taintkeeper import __version__, cli
from taintkeeper.cluster.credentials import Credentials
from taintkeeper.flags import FLAGS, Flag
from taintkeeper.settings import Settings, parse_settings
from tests.unit.cluster.kubeconfigs import kubeconfig
from tests.unit.test_settings import BAD, rows

Capture = pytest.CaptureFixture[str]
USAGE = 2


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without a cluster; nothing may start."""

    def start(work: Any) -> None:
        work.close()
        pytest.fail("the operator must not start")

    for variable in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(asyncio, "run", start)


def ending(*arguments: str) -> int:
    """Return the exit code, however the command ends."""
    try:
        return cli.main(arguments)
    except SystemExit as end:
        return int(end.code or 0)


def only_line(capsys: Capture) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return err.strip()


def test_it_knows_its_version(capsys: Capture) -> None:
    assert ending("--version") == 0
    assert capsys.readouterr().out == f"taintkeeper {__version__}\n"


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_help_tells_of_every_flag_with_its_variable_and_default(flag: Flag, capsys: Capture) -> None:
    assert ending("run", "--help") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"--{flag.name} " in text
    assert f"[${flag.variable}]" in text
    if flag.default not in (None, "false"):
        assert f"(default {flag.default}) [${flag.variable}]" in text


@pytest.mark.parametrize(("name", "text"), rows(BAD))
def test_a_bad_flag_ends_with_one_line_that_names_it_and_its_value(name: str, text: str, capsys: Capture) -> None:
    assert ending("run", f"--{name}={text}") == USAGE
    assert only_line(capsys).startswith(f"taintkeeper: --{name}: {text!r} ")


@pytest.mark.parametrize(("name", "text"), rows({name: texts[:1] for name, texts in BAD.items()}))
def test_a_bad_variable_ends_with_one_line_that_names_it_and_its_value(
    name: str, text: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = "TAINTKEEPER_" + name.upper().replace("-", "_")
    monkeypatch.setenv(variable, text)
    assert ending("run") == USAGE
    assert only_line(capsys).startswith(f"taintkeeper: {variable}: {text!r} ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "COMMAND"),
        (["walk"], "'walk'"),
        (["run", "--no-such-flag"], "--no-such-flag"),
        (["run", "now"], "now"),
        (["run", "--context"], "--context"),
        (["run", "--node-eviction-rate"], "--node-eviction-rate"),
        (["run", "--dry"], "--dry"),
        (["run", "--node-eviction=1"], "--node-eviction=1"),
        (["--vers"], "COMMAND"),
    ],
)
def test_what_is_no_command_ends_with_one_line_that_names_it(arguments: list[str], words: str, capsys: Capture) -> None:
    assert ending(*arguments) == USAGE
    line = only_line(capsys)
    assert line.startswith("taintkeeper")
    assert words in line


@pytest.mark.parametrize("by", ["--kubeconfig", "KUBECONFIG", "TAINTKEEPER_KUBECONFIG"])
def test_a_kubeconfig_that_cannot_be_used_ends_with_one_line_that_names_it(
    by: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not by.startswith("--"):
        monkeypatch.setenv(by, "/missing")
    assert ending("run", *(["--kubeconfig=/missing"] if by.startswith("--") else [])) == USAGE
    name = "KUBECONFIG" if by == "KUBECONFIG" else "--kubeconfig"
    assert only_line(capsys).startswith(f"taintkeeper: {name}: '/missing' cannot be used: ")


def test_a_context_that_is_not_there_ends_with_one_line_that_names_it(capsys: Capture, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config")
    assert ending("run", f"--kubeconfig={path}", "--context=prod") == USAGE
    assert only_line(capsys) == f"taintkeeper: --context: there is no context 'prod' in {path}"


@pytest.mark.parametrize(
    ("arguments", "dry_run", "verbose"),
    [
        ([], False, False),
        (["--dry-run"], True, False),
        (["--dry-run", "--verbose"], True, True),
        (["--dry-run=true", "-v"], True, True),
        (["--dry-run", "false", "-v", "false"], False, False),
    ],
)
def test_switches_need_no_value(
    arguments: list[str], dry_run: bool, verbose: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Settings] = []

    def run(settings: Settings, credentials: Credentials) -> int:
        given.append(settings)
        assert credentials.server == "https://k8s.example.com:6443"
        return 7

    monkeypatch.setattr(cli, "run_operator", run)
    monkeypatch.setattr(asyncio, "run", lambda code: code)
    monkeypatch.setattr(cli, "set_up_logging", lambda *_, **__: None)
    assert ending("run", f"--kubeconfig={kubeconfig(tmp_path / 'config')}", *arguments) == 7
    assert (given[0].dry_run, given[0].verbose) == (dry_run, verbose)


class Kopf:
    """Stands for one run of Kopf after another: what each does to the memo and the stop flag, and how it ends."""

    def __init__(self, *ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ends = list(ends)
        self.seconds = 0.0
        self.times: list[float] = []
        self.tasks: list[int] = []
        self.memos: list[kopf.Memo] = []
        monkeypatch.setattr(cli, "_run_once", self.run)

    async def run(self, memo: kopf.Memo, stopping: asyncio.Event) -> BaseException | None:
        self.times.append(asyncio.get_running_loop().time())
        self.tasks.append(len(asyncio.all_tasks()))
        self.memos.append(memo)
        end = self.ends.pop(0) if self.ends else "stop"
        await asyncio.sleep(self.seconds)
        if end == "stop":
            stopping.set()
        elif end == "stop later":
            asyncio.get_running_loop().call_later(0.5, stopping.set)
        elif end == "fatal":
            memo.fatal = "an address is taken"
        elif end == "fault":
            memo.runtime = kopf.Memo(failure=RuntimeError())
            stopping.set()
        return RuntimeError("410 Gone")


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("ends", "code", "runs"),
    [
        (["stop"], 0, 1),
        (["fatal"], 1, 1),
        (["fault"], 1, 1),
        (["broken", "stop"], 0, 2),
        (["broken", "broken", "fatal"], 1, 3),
        (["broken", "stop later"], 0, 2),
    ],
    ids=str,
)
async def test_it_ends_when_told_to_or_after_a_fault_and_begins_anew_when_kopf_alone_ends(
    ends: list[str], code: int, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Kopf(*ends, monkeypatch=monkeypatch)
    assert await cli.run_operator(parse_settings({}, {}), cast("Credentials", None)) == code
    assert len(bench.times) == runs
    assert len({id(memo) for memo in bench.memos}) == runs


@pytest.mark.looptime
async def test_beginning_anew_takes_ever_longer_and_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Kopf(*["broken"] * 12, monkeypatch=monkeypatch)
    monkeypatch.setattr(cli, "Random", lambda: Random(0))
    await cli.run_operator(parse_settings({}, {}), cast("Credentials", None))
    pauses = [after - before for before, after in pairwise(bench.times)]
    assert 1.0 <= pauses[0] <= 1.25
    assert all(60.0 <= pause <= 75.0 for pause in pauses[6:])
    assert set(bench.tasks) == {1}


@pytest.mark.looptime
@pytest.mark.parametrize(("seconds", "short"), [(599.0, False), (601.0, True)])
async def test_after_a_long_run_beginning_anew_is_quick_again(
    seconds: float, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Kopf(*["broken"] * 12, monkeypatch=monkeypatch)
    bench.seconds = seconds
    await cli.run_operator(parse_settings({}, {}), cast("Credentials", None))
    pauses = [after - before - seconds for before, after in pairwise(bench.times)]
    assert (max(pauses) < 2.0) is short


@pytest.mark.looptime
async def test_it_can_be_told_to_end_while_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Kopf(*["broken"] * 8, "stop later", monkeypatch=monkeypatch)
    assert await cli.run_operator(parse_settings({}, {}), cast("Credentials", None)) == 0
    assert asyncio.get_running_loop().time() - bench.times[-1] == pytest.approx(0.5)

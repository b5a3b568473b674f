"""``python -m e2e`` has Kubernetes' own end-to-end tests of taint based eviction judge Taintkeeper.

They run against a real control plane whose kube-controller-manager has neither of the two controllers that Taintkeeper
replaces, and wait real seconds: about eleven minutes. The end is 0 only if all of them ran and passed.
"""

import argparse
import asyncio
import functools
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from demo.operator_process import OperatorProcess
from e2e.build import build
from testbed.client import until
from testbed.real.build import BuildError
from testbed.real.build import build as build_cluster
from testbed.real.cluster import RealCluster
from testbed.real.processes import StartError

FOCUS = "NoExecuteTaintManager"
SPECS = 7
"""How many tests have the focus in their names: one that is renamed must not pass for passed."""
NODES = 4
READY_SECONDS = 60.0

say = functools.partial(print, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests; return 0 if all of them passed, 1 if not, 2 if it could not be tried."""
    argparse.ArgumentParser(prog="python -m e2e", description=__doc__).parse_args(arguments)
    try:
        build_cluster(say)
        program = build(say)
        with RealCluster() as cluster, tempfile.TemporaryDirectory() as folder:
            cluster.add_nodes(NODES)
            report = asyncio.run(_judge(program, cluster, Path(folder)))
    except (BuildError, StartError, OSError) as error:
        print(f"e2e: {error}", file=sys.stderr)
        return 2
    wrong = faults(report)
    say("\n".join([*told(report), *(wrong or [f"all {SPECS} passed"])]))
    return 1 if wrong else 0


def told(report: Any) -> list[str]:
    """Return how each test of a report ended, one line each."""
    return [f"{state:8} {seconds:6.1f} s  {name}" for name, state, seconds in _specs(report)]


def faults(report: Any) -> list[str]:
    """Return what is wrong with a report of ginkgo's, in JSON (``types.Report`` in its Go package)."""
    specs = _specs(report)
    wrong = [f"{name}: {state}" for name, state, _ in specs if state != "passed"]
    if len(specs) != SPECS:
        wrong.append(f"{len(specs)} tests have {FOCUS} in their names, not {SPECS}")
    if not all(suite["SuiteSucceeded"] for suite in report):
        wrong.append("the suite did not succeed")
    return wrong


def _specs(report: Any) -> list[tuple[str, str, float]]:
    """Return name, state and seconds of the tests that are meant."""
    found = []
    for suite in report:
        for spec in suite["SpecReports"] or ():
            name = " ".join([*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]])
            if spec["LeafNodeType"] == "It" and FOCUS in name:
                found.append((name, spec["State"], spec["RunTime"] / 1e9))
    return found


async def _judge(program: Path, cluster: RealCluster, folder: Path) -> Any:
    async with OperatorProcess(cluster.kubeconfig, (), folder / "operator.log") as operator:
        try:
            await until(operator.is_ready, READY_SECONDS)
        except TimeoutError:
            raise StartError("\n".join(["the operator was not ready in time:", *operator.tail()])) from None
        report = await _run(program, cluster.kubeconfig, folder)
        if faults(report):
            say("\n".join(operator.tail()))
        return report


async def _run(program: Path, kubeconfig: Path, folder: Path) -> Any:
    """Run the tests, which say themselves what they do; return their report.

    Raises:
        OSError: there is none.
    """
    report = folder / "report.json"
    flags = ("--provider=skeleton", f"--num-nodes={NODES}", "--allowed-not-ready-nodes=0")
    ginkgo = (f"--ginkgo.focus={FOCUS}", "--ginkgo.v", "--ginkgo.no-color", f"--ginkgo.json-report={report}")
    process = await asyncio.create_subprocess_exec(
        *(program, f"--kubeconfig={kubeconfig}", *flags, *ginkgo), cwd=folder, stdin=asyncio.subprocess.DEVNULL
    )
    try:
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return json.loads(await asyncio.to_thread(report.read_text))


if __name__ == "__main__":
    sys.exit(main())

"""``python -m testbed.real build`` builds the real control plane, ``run`` starts one and keeps it."""

import argparse
import functools
import signal
import sys
import time

from testbed.real.build import BuildError, bin_folder, build, kubernetes_version
from testbed.real.cluster import REPLACED, RealCluster
from testbed.real.processes import StartError

say = functools.partial(print, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for and return the exit status: 2 when building or starting fails."""
    parser = argparse.ArgumentParser(prog="python -m testbed.real", description=__doc__)
    tasks = parser.add_subparsers(dest="task", required=True)
    builder = tasks.add_parser("build", help="build the programs, once per machine and version")
    builder.add_argument("--if-possible", action="store_true", help="say why where it cannot be built, and go on")
    runner = tasks.add_parser("run", help="build if needed, start, print the kubeconfig's path, end with Ctrl-C")
    runner.add_argument("--nodes", type=int, default=6, metavar="N", help="how many nodes (%(default)s)")
    runner.add_argument("--zones", type=int, default=2, metavar="N", help="over how many zones (%(default)s)")
    runner.add_argument(
        "--controllers-off",
        default=",".join(REPLACED),
        metavar="NAMES",
        help="controllers that kube-controller-manager leaves out, with commas between; '' for none (%(default)s)",
    )
    options = parser.parse_args(arguments)
    try:
        build(say)
        if options.task == "run":
            run(options.nodes, options.zones, [name for name in options.controllers_off.split(",") if name])
    except (BuildError, StartError) as error:
        if options.task == "build" and options.if_possible:
            say(f"no real control plane to test against: {error}")
            return 0
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def run(nodes: int, zones: int, controllers_off: list[str]) -> None:
    """Start a control plane with nodes and keep it until SIGINT or SIGTERM.

    Raises:
        StartError: it does not start.
    """
    # Both, since shells start background jobs with SIGINT ignored.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.default_int_handler)
    started = time.monotonic()
    try:
        with RealCluster(controllers_off=controllers_off) as cluster:
            cluster.add_nodes(nodes, zones)
            say(f"Kubernetes {kubernetes_version()} with {nodes} nodes, ready in {time.monotonic() - started:.1f} s")
            say(f"\n  export KUBECONFIG={cluster.kubeconfig}")
            say(f"  {bin_folder() / 'kubectl'} get nodes\n")
            say("Ctrl-C ends it.")
            signal.pause()
    except KeyboardInterrupt:
        say("ended")


if __name__ == "__main__":
    sys.exit(main())

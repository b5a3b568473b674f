"""Run an embedded cluster by hand: ``python -m testbed.embedded run --nodes 6 --zones 2``."""

import argparse
import signal

from testbed.embedded.cluster import EmbeddedCluster

ENDING = {signal.SIGINT, signal.SIGTERM}


def main() -> None:
    """Start a cluster, print where its kubeconfig is, and stay until interrupted or terminated."""
    parser = argparse.ArgumentParser(prog="python -m testbed.embedded", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="start a cluster and keep it until Ctrl-C")
    run.add_argument("--nodes", type=int, default=3, help="how many nodes it has (default: %(default)s)")
    run.add_argument("--zones", type=int, default=1, help="how many zones they are spread over (default: %(default)s)")
    arguments = parser.parse_args()
    # Blocked before any thread is started, so that none of them is interrupted in place of the wait below.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    with EmbeddedCluster() as cluster:
        cluster.add_nodes(arguments.nodes, arguments.zones)
        print(f"export KUBECONFIG={cluster.kubeconfig}", flush=True)
        signal.sigwait(ENDING)


if __name__ == "__main__":
    main()

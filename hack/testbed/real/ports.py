"""Ports that stay ours."""

import random
import socket

# Below the ports that the kernel hands out by itself. From one of those, a client that calls a server while that is
# down can be given the server's own port: it then talks to itself and the server cannot come back.
CANDIDATES = range(20_000, 30_000)


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on.

    Raises:
        OSError: none was found in a hundred tries.
    """
    for port in random.sample(CANDIDATES, 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise OSError(f"no free port found from {CANDIDATES.start} to {CANDIDATES.stop - 1}")

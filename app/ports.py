"""Free loopback ports for our own parts, below the range from which the system takes ports of outgoing connections.

A part that is killed must find its port free when it is started again; a port of the outgoing range could be taken by
any client meanwhile, even by one that tries to reconnect to that very port.
"""

import random
import socket

LOWEST, HIGHEST = 20_000, 32_000


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen on `port` now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """A loopback port on which nobody listens."""
    for _ in range(200):
        port = random.randrange(LOWEST, HIGHEST)
        if is_free(port):
            return port
    raise OSError(f"no free port found between {LOWEST} and {HIGHEST}")


def answers(port: int) -> bool:
    """Whether something accepts connections on that loopback port."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0

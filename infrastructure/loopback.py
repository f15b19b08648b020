"""Sockets that only this machine can reach."""

import socket
from ipaddress import ip_address

from refold.domain.errors import InvalidSetting


def open_listener(host: str, port: int) -> socket.socket:
    """Open a socket that only this machine can reach. Port 0 chooses a free port.

    Raises:
        InvalidSetting: the host is not the loopback interface, or the port is in use.
    """
    if not is_loopback(host):
        raise InvalidSetting(
            f"host={host!r} is not allowed: the memory is served to this machine only. Use "
            "127.0.0.1, ::1 or localhost.",
            setting="host",
            value=host,
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise InvalidSetting(
            f"port={port} of {host} cannot be used ({error}); give another port, or 0 for any free one",
            setting="port",
            value=port,
        ) from error


def is_loopback(host: str) -> bool:
    """Return whether this host name is the loopback interface."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def names_of(host: str, port: int) -> tuple[str, ...]:
    """Return the values of a ``Host`` header that name this machine's loopback interface.

    A server that accepts no other names cannot be reached by a web page through DNS rebinding.
    """
    bare = f"[{host}]" if ":" in host else host
    return tuple(f"{n}:{port}" for n in dict.fromkeys((bare, "127.0.0.1", "localhost", "[::1]")))

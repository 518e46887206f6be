"""A port of this machine that a person names to be listened on."""

from __future__ import annotations

import socket

from glue_jobs.core.errors import UsageError

LOOPBACK = "127.0.0.1"


def listening(port: int) -> socket.socket:
    """A socket that listens on 127.0.0.1. port: 0 for any free one. Raises UsageError where the port is taken, or not ours to take."""
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise UsageError(
            f"port {port} can't be listened on: {error.strerror}", "port-taken", "give another --port, or none for any free one"
        ) from None

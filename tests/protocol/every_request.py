"""Tries faults at the requests of the scenario, those whose names it reads; python -m tests.protocol.every_request"""

from __future__ import annotations

from tests.protocol.in_process import hurry

if __name__ == "__main__":
    hurry()  # first, because our functions take `sleep` when they are defined
    from tests.protocol.fault_points import serve

    serve()

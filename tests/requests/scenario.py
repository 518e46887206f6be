"""Does what every job does, on an AWS in this process, and writes the calls to a file: python -m tests.requests.scenario FILE"""

from __future__ import annotations

import sys

from tests.protocol.in_process import hurry

if __name__ == "__main__":
    hurry()  # first, because our functions take `sleep` when they are defined
    from tests.requests.play import record

    record(sys.argv[1])

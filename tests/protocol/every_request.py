"""Checks a part of all points of the scenario; prints the result as JSON. python -m tests.protocol.every_request <part> <parts>"""

from __future__ import annotations

import sys

from tests.protocol.in_process import hurry

if __name__ == "__main__":
    hurry()  # first, because our functions take `sleep` when they are defined
    from tests.protocol.fault_points import main

    sys.exit(main(sys.argv[1:]))

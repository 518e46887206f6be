"""The garbage collector in a process of our own: it leaves alone what stays to the end anyway, most of which is botocore's."""

from __future__ import annotations

import gc

# Python's own are (700, 10, 10): a small batch was interrupted 300 times, for a tenth of its time, a plan of many files for a third of it.
COLLECTED_AT = (50_000, 20, 100)


def collect_less() -> None:
    """Never look again at what is there by now, modules and the clients' models, and at the rest less often."""
    gc.freeze()
    gc.set_threshold(*COLLECTED_AT)

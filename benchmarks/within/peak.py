"""The most memory that this process ever had."""

from __future__ import annotations

from pathlib import Path

KIB = 1024


def peak_bytes() -> int:
    """Resident memory, of this process alone. Not getrusage's: that begins with what the parent had when it started this one."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * KIB

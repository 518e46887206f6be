"""The peak memory of a process and all that came of it, sampled."""

from __future__ import annotations

import threading

import psutil

EVERY_SECONDS = 0.2


class PeakMemory:
    """Samples until closed. Resident bytes are added up over the processes: pages that forked workers share count in each of them,
    so that the figure is never too small but for what comes and goes between two looks."""

    def __init__(self, process_id: int) -> None:
        self._root = psutil.Process(process_id)
        self._peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def take(self) -> int:
        """The peak since the last call, in bytes; it looks once more, so that what is over before the next sample counts too."""
        self._look()
        peak, self._peak = self._peak, 0
        return peak

    def close(self) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(EVERY_SECONDS):
            self._look()

    def _look(self) -> None:
        try:
            family = [self._root, *self._root.children(recursive=True)]
        except psutil.Error:  # it ended
            return
        self._peak = max(self._peak, sum(_resident(process) for process in family))


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:  # it ended meanwhile
        return 0

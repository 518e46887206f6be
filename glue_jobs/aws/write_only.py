"""A binary file that is only written to, as pyarrow asks for it: its methods but `write`, `tell` and `close`."""

from __future__ import annotations


class WriteOnly:
    """What such a file answers; its bytes go when it decides."""

    def flush(self) -> None:
        """Nothing."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

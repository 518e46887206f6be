"""A command in a terminal of its own: what stands on its screen, a new size, Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from types import TracebackType

import pyte

DEADLINE_SECONDS = 60.0


class Terminal:
    """`dmslake` with some words behind a pseudo-terminal, drawn by pyte."""

    def __init__(self, words: list[str], environment: Mapping[str, str], columns: int = 80, lines: int = 24) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._master, slave = pty.openpty()
        self.raw = b""
        self._size(columns, lines)
        plain = {name: text for name, text in environment.items() if name not in ("COLUMNS", "LINES", "NO_COLOR", "CI")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "controller.cli", *words],
            stdin=slave, stdout=slave, stderr=slave, env={**plain, "TERM": "xterm-256color"}, start_new_session=True,
        )  # fmt: skip
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait(60)
        os.close(self._master)

    @property
    def lines(self) -> list[str]:
        """What a person sees, line by line."""
        return [line.rstrip() for line in self._screen.display]

    def until(self, what: Callable[[list[str]], bool]) -> list[str]:
        """The lines once they are what is waited for."""
        ends = time.monotonic() + DEADLINE_SECONDS
        while not what(self.lines):
            assert time.monotonic() < ends, "\n".join(self.lines)
            assert self._read(), "\n".join(self.lines)
        return self.lines

    def resize(self, columns: int, lines: int) -> None:
        """As when a person pulls at the window."""
        self._size(columns, lines)
        self._screen.resize(lines, columns)
        self._process.send_signal(signal.SIGWINCH)

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        self._process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> int:
        """The exit code, once it ends by itself and all that it wrote is read."""
        while self._read():
            pass
        return self._process.wait(60)

    def _size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _read(self) -> bool:
        """Draw what has come, after a while also if nothing has; False at the end."""
        if not select.select([self._master], [], [], 1.0)[0]:
            return self._process.poll() is None
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # Linux says so when the other end is closed
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

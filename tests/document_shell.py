"""Runs the commands of a document as a reader would: block after block, in one scratch folder and one environment."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK_SECONDS = 150
UP = "dmslake up"
_FENCE = re.compile(r"^```(\w+)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block. mark: the second word of its fence."""

    language: str
    mark: str
    text: str

    @property
    def lines(self) -> list[str]:
        """Its lines without comments and empty ones."""
        lines = (re.sub(r"\s+# .*$|^#.*$", "", line) for line in self.text.splitlines())
        return [line for line in lines if line.strip()]


def blocks(document: Path) -> list[Block]:
    """The fenced blocks of a Markdown file, in order."""
    return [Block(match[1], match[2] or "", match[3]) for match in _FENCE.finditer(document.read_text("utf-8"))]


@dataclass
class DocumentShell:
    """A reader's shell. `dmslake up` stays in the background, as in a terminal of its own, and what it prints is taken up."""

    folder: Path
    variables: Mapping[str, str]
    block_seconds: float = BLOCK_SECONDS
    _up: list[subprocess.Popen[str]] = field(default_factory=list)

    def run(self, block: Block) -> str:
        """Run a sh or python block, which must succeed; what it printed."""
        if block.language == "python":
            return self.bash(f"python - <<'END_OF_BLOCK'\n{block.text}END_OF_BLOCK\n")
        if block.lines == [UP]:
            return self._start_up()
        return self.bash(block.text)

    def bash(self, text: str) -> str:
        """What a text prints in a new bash with the variables that the blocks before exported; their values are kept for the next."""
        script = f"set -e\n[ -f .exported ] && . ./.exported\n{text}\nexport -p > .exported\n"
        done = subprocess.run(
            ["/bin/bash", "-c", script],
            cwd=self.folder, env=dict(self.variables), capture_output=True, text=True, timeout=self.block_seconds, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}\n--- exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _start_up(self) -> str:
        process = subprocess.Popen(
            [sys.executable, "-m", "controller.cli", "up"], cwd=self.folder, env=dict(self.variables), stdout=subprocess.PIPE, text=True
        )
        self._up.append(process)
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        printed = "".join(lines)
        self.bash("\n".join(line for line in lines if not line.startswith("aws ")))
        return printed

    def close(self) -> None:
        """End what stayed in the background."""
        for process in self._up:
            process.terminate()
            process.wait(60)
            assert process.stdout is not None
            process.stdout.close()

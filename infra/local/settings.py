"""What `EmbeddedAws` tells the process of its server."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from infra.local.job_process import CODE_FOLDER, Runtime


@dataclass(frozen=True)
class Settings:
    """What the server needs to know, as it travels over standard input; see `Runtime` for the meaning."""

    folder: str
    environment: Mapping[str, str]
    port: int = 0
    remove_folder: bool = False
    code_folder: str = str(CODE_FOLDER)
    python_shell: str = sys.executable
    cores: int = 2
    driver_memory: str = "1g"
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    seconds_per_timeout_minute: float = 60.0

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    def runtime(self) -> Runtime:
        """The settings of the job runs."""
        return Runtime(
            folder=Path(self.folder),
            environment=self.environment,
            code_folder=Path(self.code_folder),
            python_shell=self.python_shell,
            cores=self.cores,
            driver_memory=self.driver_memory,
            spark_conf=self.spark_conf,
            seconds_per_timeout_minute=self.seconds_per_timeout_minute,
        )

"""What a Glue job run is on this machine: the command line, the environment and the error text of one subprocess.

Values in, values out; `glue_runner` starts and watches the process.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

CODE_FOLDER = Path(__file__).resolve().parents[2]
SHIM_FOLDER = Path(__file__).resolve().parent / "awsglue_shim"

PYTHON_SHELL = "pythonshell"
SPARK = "glueetl"

ERROR_MESSAGE_CHARACTERS = 1000

# What a person's shell says about AWS, Spark, Python or dmslake must not reach a job: a job on Glue sees none of it.
_NOT_INHERITED = re.compile(r"^(AWS_|DMSLAKE_|SPARK_|PYSPARK_|HADOOP_|PYTHON|MOTO_|JAVA_HOME$)")
_EXCEPTION_LINE = re.compile(r"^[A-Za-z_][\w.]*(:\s|$)")
_LOG4J_LINE = re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d (TRACE|DEBUG|INFO|WARN|ERROR) ")
_TRACEBACK = "Traceback (most recent call last):"


@dataclass(frozen=True)
class Runtime:
    """How jobs run here: which Python, which code, which Spark settings, and the environment that leads to the server."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    code_folder: Path = CODE_FOLDER
    python_shell: str = sys.executable
    cores: int = field(default_factory=lambda: os.cpu_count() or 2)
    driver_memory: str = "1g"
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    seconds_per_timeout_minute: float = 60.0


def merged_arguments(default: Mapping[str, str], given: Mapping[str, str], non_overridable: Mapping[str, str]) -> dict[str, str]:
    """The arguments of a run as Glue merges them: the run's over the job's, the non-overridable ones over both."""
    return {**default, **given, **non_overridable}


def arguments_of_glue(command: str, job_name: str, run_id: str) -> dict[str, str]:
    """What Glue adds on its own. A Python shell job is given no `JOB_…`: code that asks for it there would fail on AWS."""
    if command == PYTHON_SHELL:
        return {"--job-language": "python", "--job-bookmark-option": "job-bookmark-disable"}
    return {
        "--JOB_NAME": job_name,
        "--JOB_ID": f"j_{job_name}",
        "--JOB_RUN_ID": run_id,
        "--job-bookmark-option": "job-bookmark-disable",
    }


def command_line(python: str, script: Path, arguments: Mapping[str, str]) -> list[str]:
    """The argv of the subprocess: each argument is two words, as on Glue, an empty value too."""
    return [python, str(script), *(word for pair in arguments.items() for word in pair)]


def python_environment(runtime: Runtime, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of any job: what is needed of this machine's, the server's address, and our code."""
    kept = {name: value for name, value in inherited.items() if not _NOT_INHERITED.match(name)}
    path = os.pathsep.join([str(SHIM_FOLDER), str(runtime.code_folder)])
    return {**kept, **runtime.environment, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def spark_environment(runtime: Runtime, java_home: str, scratch: Path, extra_conf: Sequence[str] = ()) -> dict[str, str]:
    """What a Spark job needs beside: Java, the Python of its workers, and the master.

    `local[N,4]`: N slots and four attempts per task. Plain `local[N]` never tries a task again, and what a failed
    attempt leaves behind would go untested.
    """
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",  # it would overwrite the log lines
        "spark.driver.memory": runtime.driver_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        **runtime.spark_conf,
    }
    words = ["--master", f"local[{runtime.cores},4]"]
    for setting in [*(f"{name}={value}" for name, value in conf.items()), *extra_conf]:
        words += ["--conf", setting]
    return {
        "JAVA_HOME": java_home,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": shlex.join([*words, "pyspark-shell"]),
    }


def settings_of_conf_argument(value: str) -> list[str]:
    """The settings in Glue's `--conf` argument, whose one value chains several: `a=1 --conf b=2` → ['a=1', 'b=2']."""
    return [setting.strip() for setting in re.split(r"\s--conf\s", value) if setting.strip()]


def error_message(log_lines: Iterable[str], exit_code: int) -> str:
    """What GetJobRun shows of a failed run: the exception of the last traceback, else the last line that says something.

    Lines of Spark's own log are passed over: the JVM says good-bye after the script has failed.
    """
    lines = [line.rstrip() for line in log_lines if line.strip() and not _LOG4J_LINE.match(line)]
    found = _last_exception(lines) or (lines[-1].strip() if lines else "")
    ended = f"killed by signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
    if not found:
        return ended
    return f"{found} ({ended})"[:ERROR_MESSAGE_CHARACTERS] if exit_code < 0 else found[:ERROR_MESSAGE_CHARACTERS]


def _last_exception(lines: Sequence[str]) -> str:
    """The line `Name: text` that ends the last Python traceback, or ''."""
    starts = [index for index, line in enumerate(lines) if line.startswith(_TRACEBACK)]
    if not starts:
        return ""
    for line in lines[starts[-1] + 1 :]:
        if _EXCEPTION_LINE.match(line):
            return line
    return ""

"""What `read`, `diff` and `explain` share: the state of a table that a person names, and how values are shown."""

from __future__ import annotations

import importlib
import importlib.util
import json
import time
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controller.cli.call import Call, one_table, warn
from controller.history import rounded_up, time_text
from controller.problems import NO_PYARROW
from controller.session import Session
from glue_jobs.aws.translate import translated
from glue_jobs.core.errors import ConfigurationError, DmslakeError, name_table
from glue_jobs.core.snapshot import Snapshot
from glue_jobs.core.state import TableState
from glue_jobs.protocol.as_of import Reading, look

NULL = "NULL"


@dataclass(frozen=True)
class Looked:
    """A table that somebody looks at, in a session. place: glue_jobs.spark.place.Place."""

    session: Session
    state: TableState
    place: Any

    def at(self, as_of: str) -> Reading:
        """What a reader sees as of `as_of`, '' for now; a warning where that is not the head."""
        reading = look(self.session.clients.s3, self.session.table, self.state.path, as_of, time.sleep)
        if not as_of and reading.state.publishing:
            warn([f"change {reading.state.publishing} is not published yet: this is the state before it"])
        return reading

    def table(self, snapshot: Snapshot, paths: Sequence[str] | None = None) -> Any:
        """The rows of a snapshot, or of the files at `paths` only: glue_jobs.spark.past.PastTable."""
        return importlib.import_module("glue_jobs.spark.past").past_table(self.place, str(self.state.path), snapshot, paths)


@contextmanager
def looking(call: Call, path: str) -> Iterator[Looked]:
    """A session that reads one table; errors of AWS in our words, ways out with the table's name."""
    need("pyarrow", "numpy")
    reading = importlib.import_module("glue_jobs.spark.reading")
    with call.session() as session:
        _, state = one_table(session, path, wants=lambda state: False)
        limits = call.settings.limits
        place = reading.reading_place(session.host.variables, state.path.bucket, state.lake, limits, state.before_images)
        try:
            with translated():
                yield Looked(session, state, place)
        except DmslakeError as error:
            raise name_table(error, str(state.path)) from None


def need(*packages: str, todo: str = NO_PYARROW) -> None:
    """Refuse to go on without packages that the command line does without otherwise."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise ConfigurationError(f"the package {package}, which reads data files, is not installed", "no-package", todo)


def cell(value: Any) -> str:
    """A value of glue_jobs.spark.plain_rows for people, on one line. Texts that could be taken for something else stand in quotes:
    empty ones, those with blanks at an end, those that look like a null; control characters are escaped in quotes too."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    if any(map(_is_odd, value)):
        return "'" + "".join(_escaped(char) for char in value) + "'"
    return f"'{value}'" if value in ("", NULL) or value != value.strip() or value.startswith("'") else value


def _is_odd(char: str) -> bool:
    """Whether a terminal would do something else with the character than show it."""
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(char: str) -> str:
    if char in "\\'":
        return "\\" + char
    return json.dumps(char)[1:-1] if _is_odd(char) else char


def moment_text(record_time: str) -> str:
    """A record's time for people, '' for none; `--as-of` with it means that change."""
    moment = datetime.fromisoformat(record_time.replace("Z", "+00:00")) if record_time else None
    return f"{time_text(rounded_up(moment), 'milliseconds')} UTC" if moment is not None else ""


def state_text(snapshot: Snapshot) -> str:
    """Which state it is, in words."""
    return f"change {snapshot.change} of {moment_text(snapshot.time)}" if snapshot.change else "before the first change: no rows"


def state_data(snapshot: Snapshot) -> dict[str, Any]:
    """The same for JSON."""
    return {"change": snapshot.change, "time": snapshot.time}

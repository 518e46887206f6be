"""The settings of a call, the same from flags, environment and Glue job arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from glue_jobs.core.errors import ConfigurationError, UsageError
from glue_jobs.core.limits import Limits, read_limits
from glue_jobs.core.paths import S3Uri

COMPRESSIONS = ("zstd", "snappy")
RUNNERS = ("glue", "local")
MAY_BE_EMPTY = frozenset({"job_prefix"})  # given as an empty text: no prefix, whatever the environment says
DEFAULTS = {"state_table": "DMSCDC_Controller", "runner": "glue", "compression": "zstd"}


@dataclass(frozen=True)
class Settings:
    """raw may end in a wildcard schema (`s3://bucket/dms/sales_*`). paths: tables to work on, empty for all."""

    raw: str = ""
    lake: str = ""
    state_table: str = "DMSCDC_Controller"
    database: str = ""
    runner: str = "glue"
    job_prefix: str = ""
    compression: str = "zstd"
    run_id: str = ""
    paths: tuple[str, ...] = ()
    limits: Limits = Limits()

    def require(self, *names: str) -> Settings:
        """The settings themselves, if all of `names` are set; else a ConfigurationError that lists how to set the first missing."""
        for name in names:
            if not getattr(self, name):
                flag = name.replace("_", "-")
                todo = f"give --{flag}, or set DMSLAKE_{name.upper()}, or the job argument --{name}"
                raise ConfigurationError(f"the setting {name} is missing", "missing-setting", todo)
        return self


def setting_names() -> tuple[str, ...]:
    """The names that flags, environment and job arguments may have (paths and run id aside)."""
    own = [item.name for item in fields(Settings) if item.name not in ("limits", "paths", "run_id")]
    return (*own, *(item.name for item in fields(Limits)))


def read_settings(given: Mapping[str, str | None], environment: Mapping[str, str]) -> Settings:
    """Settings from given texts (flags or job arguments, names with underscores), then DMSLAKE_… variables, then defaults."""
    texts: dict[str, str] = {}
    for name in setting_names():
        text = given.get(name)
        if not text and not (text == "" and name in MAY_BE_EMPTY):
            text = environment.get(f"DMSLAKE_{name.upper()}") or DEFAULTS.get(name, "")
        texts[name] = str(text).strip()
    _one_of("runner", texts["runner"], RUNNERS)
    _one_of("compression", texts["compression"], COMPRESSIONS)
    for name in ("raw", "lake"):
        if texts[name]:
            S3Uri.parse(texts[name])
    paths = tuple(path.strip() for path in (given.get("path") or "").split(",") if path.strip())
    plain = {name: texts[name] for name in ("raw", "lake", "state_table", "database", "runner", "job_prefix", "compression")}
    return Settings(paths=paths, run_id=given.get("run_id") or "", limits=read_limits(texts), **plain)


def _one_of(name: str, text: str, allowed: Sequence[str]) -> None:
    if text not in allowed:
        raise UsageError(f"the setting {name} is {text!r}", "bad-setting", f"give one of {', '.join(allowed)}")

"""Which raw folders the setting `--raw` means: all schemas below a folder, or those that match a wildcard."""

from __future__ import annotations

import re
from dataclasses import dataclass

from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import CONTROL_TABLE_PREFIX, S3Uri, TablePath, has_catalog_name, is_name

_WILDCARD = re.compile(r"[*?]")


@dataclass(frozen=True)
class RawScope:
    """The tables at `<bucket>/<prefix><schema>/<table>/` whose schema matches `schemas` (`*` any text, `?` one character)."""

    bucket: str
    prefix: str  # '' or with slash at the end
    schemas: str = "*"

    @classmethod
    def parse(cls, raw: str) -> RawScope:
        """`s3://bucket/prefix/`, or `s3://bucket/prefix/sales_*` where the last part is a wildcard for schemas."""
        uri = S3Uri.folder(raw)
        parts = uri.key.rstrip("/").split("/") if uri.key else []
        schemas = parts.pop() if parts and _WILDCARD.search(parts[-1]) else "*"
        if any(_WILDCARD.search(part) for part in parts):
            raise UsageError(
                f"the setting raw is {raw!r}: a wildcard stands before its last part",
                "bad-raw",
                "write it as s3://bucket/prefix/ or s3://bucket/prefix/sales_*",
            )
        if "," in uri.key:
            raise UsageError(f"the setting raw is {raw!r}: job arguments separate paths by comma", "bad-raw", "choose another prefix")
        return cls(uri.bucket, "".join(part + "/" for part in parts), schemas)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}{'' if self.schemas == '*' else self.schemas}"

    def folder_to_write(self) -> str:
        """`s3://bucket/prefix/`, below which schemas are written; UsageError where the setting means some of them: no folder has such a
        name."""
        folder = f"s3://{self.bucket}/{self.prefix}"
        if self.schemas != "*":
            raise UsageError(
                f"the setting raw is '{self}': expected a folder to write to, found a wildcard, which only chooses what is read",
                "bad-raw",
                f"give --raw {folder}, or set DMSLAKE_RAW to it",
            )
        return folder

    def has_schema(self, name: str) -> bool:
        """Whether a schema's folder name matches."""
        pattern = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in self.schemas)
        return re.fullmatch(pattern, name, re.DOTALL) is not None

    def has(self, path: TablePath) -> bool:
        """Whether a table lies in the scope."""
        parent = path.prefix[: -len(path.schema) - 1]
        return (path.bucket, parent) == (self.bucket, self.prefix) and self.has_schema(path.schema)

    def table(self, schema: str, table: str) -> TablePath:
        return TablePath(self.bucket, f"{self.prefix}{schema}/", f"{table}/")


def is_table_name(name: str) -> bool:
    """Whether a folder may be a table: a name that every place bears, and without the comma that separates paths in job arguments."""
    return is_name(name) and "," not in name


def is_table(path: TablePath) -> bool:
    """Whether a folder may be a table: by its name, and by the one it would have in the catalog."""
    return is_table_name(path.table) and has_catalog_name(path)


def is_control_table(name: str) -> bool:
    """Whether a folder is one of DMS's own tables (`awsdms_status`, …)."""
    return name.startswith(CONTROL_TABLE_PREFIX)

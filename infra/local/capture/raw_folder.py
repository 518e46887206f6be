"""The raw folder in S3: where files go, and the capture's own state beside them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from infra.local.capture.errors import CaptureError, SetupError, UsageError
from infra.local.capture.source import BinlogPosition

_DMS_NAME = re.compile(r"(LOAD[0-9A-F]{8}|\d{8}-\d{9})\.parquet")
STATE_FORMAT = 1


@dataclass
class CaptureState:
    """Where the capture goes on, and the last CDC file name of each table.

    is_loading: a full load was begun at the position, and hasn't come to its end: what lies in the folder is a part of it. tables: those
    that are captured, None for all of the database: the position is of no others.
    """

    position: BinlogPosition
    last_files: dict[str, str] = field(default_factory=dict)
    is_loading: bool = False
    tables: tuple[str, ...] | None = None

    def to_json(self) -> bytes:
        """One object, `"format": 1` first; then what is not always there: `"loading": true`, `"tables": […]`."""
        content = {
            "format": STATE_FORMAT,
            "log_file": self.position.file,
            "log_pos": self.position.offset,
            "last_files": self.last_files,
            **({"loading": True} if self.is_loading else {}),
            **({"tables": list(self.tables)} if self.tables is not None else {}),
        }
        return json.dumps(content, indent=1).encode()

    @classmethod
    def from_json(cls, text: bytes, where: str) -> CaptureState:
        """Raise if it is of another format."""
        content = json.loads(text)
        if content.get("format") != STATE_FORMAT:
            raise CaptureError(
                f"{where}: expected format {STATE_FORMAT}, found {content.get('format')!r}",
                "capture-state",
                "use the version of dmslake that wrote it, or remove it and run with --full-load",
            )
        position = BinlogPosition(content["log_file"], content["log_pos"])
        tables = content.get("tables")
        return cls(position, dict(content["last_files"]), bool(content.get("loading", False)), None if tables is None else tuple(tables))


class RawFolder:
    """`<raw>/<schema>/`: one folder per table. The state is `<raw>/_capture/<schema>.json` or a local file."""

    def __init__(self, raw: str, schema: str, s3_client: Any, state_file: Path | None = None) -> None:
        match = re.fullmatch(r"s3://([^/]+)/*(.*?)/*", raw)
        if match is None:
            raise UsageError(f"--raw: expected s3://bucket/prefix/, found {raw!r}", "bad-uri", "write it so")
        self.bucket = match[1]
        self._prefix = f"{match[2]}/" if match[2] else ""
        self._schema = schema
        self._s3 = s3_client
        self._state_file = state_file
        self._state_key = f"{self._prefix}_capture/{schema}.json"

    @property
    def state_place(self) -> str:
        """Where the state is, for messages."""
        return str(self._state_file) if self._state_file else f"s3://{self.bucket}/{self._state_key}"

    def put(self, table: str, name: str, content: bytes) -> str:
        """Write a file of the table; its key is the answer."""
        key = f"{self._table_prefix(table)}{name}"
        with self._refusals():
            self._s3.put_object(Bucket=self.bucket, Key=key, Body=content)
        return key

    def remove_files(self, table: str) -> int:
        """Delete the table's load and CDC files, nothing else; how many there were."""
        removed, prefix = 0, self._table_prefix(table)
        with self._refusals():
            for page in self._s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix):
                keys = [item["Key"] for item in page.get("Contents", ()) if _DMS_NAME.fullmatch(item["Key"][len(prefix) :])]
                if keys:
                    self._delete(keys)
                removed += len(keys)
        return removed

    def _delete(self, keys: list[str]) -> None:
        answer = self._s3.delete_objects(Bucket=self.bucket, Delete={"Objects": [{"Key": key} for key in keys]})
        if answer.get("Errors"):
            raise CaptureError(
                f"s3://{self.bucket}: old files can't be deleted: {answer['Errors'][:3]}",
                "raw-folder",
                "let the credentials delete below --raw, then run with --full-load again",
            )

    def load_state(self) -> CaptureState | None:
        """The saved state; None before the first save."""
        if self._state_file is not None:
            text = self._state_file.read_bytes() if self._state_file.exists() else None
        else:
            text = self._get_state()
        return None if text is None else CaptureState.from_json(text, self.state_place)

    def save_state(self, state: CaptureState) -> None:
        """After the files that it stands for are written: a crash in between repeats them, under later names."""
        if self._state_file is None:
            with self._refusals():
                self._s3.put_object(Bucket=self.bucket, Key=self._state_key, Body=state.to_json())
            return
        new = self._state_file.with_name(self._state_file.name + ".new")
        new.write_bytes(state.to_json())
        os.replace(new, self._state_file)

    def _get_state(self) -> bytes | None:
        try:
            with self._refusals():
                content: bytes = self._s3.get_object(Bucket=self.bucket, Key=self._state_key)["Body"].read()
        except self._s3.exceptions.NoSuchKey:
            return None
        return content

    def _table_prefix(self, table: str) -> str:
        return f"{self._prefix}{self._schema}/{table}/"

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """S3's errors as ours, but for a key that isn't there."""
        try:
            yield
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and error.response["Error"]["Code"] == "NoSuchKey":
                raise
            raise SetupError(
                f"s3://{self.bucket}: {error}",
                "raw-folder",
                "check that the bucket exists, the endpoint answers and the credentials may write",
            ) from error

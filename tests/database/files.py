"""What stands in a raw bucket, and the table it adds up to: the oracle of the capture's tests."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from tests.database.rows import Row, normal


@dataclass(frozen=True)
class RawFiles:
    """The raw bucket of one database."""

    client: Any
    bucket: str
    prefix: str
    database: str

    @property
    def url(self) -> str:
        """What `--raw` is given."""
        return f"s3://{self.bucket}/{self.prefix}"

    def listed(self) -> list[str]:
        """Every key in the bucket."""
        answer = self.client.list_objects_v2(Bucket=self.bucket)
        assert not answer["IsTruncated"]
        return [item["Key"] for item in answer.get("Contents", ())]

    def names(self, table: str) -> list[str]:
        """The table's file names in DMS's order: load files, then CDC files."""
        folder = f"{self.prefix}{self.database}/{table}/"
        names = [key[len(folder) :] for key in self.listed() if key.startswith(folder)]
        return sorted(names, key=lambda name: (not name.startswith("LOAD"), name))

    def body(self, key: str) -> bytes:
        """An object's bytes."""
        content: bytes = self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return content

    def file(self, table: str, name: str) -> pq.ParquetFile:
        """A file of the table."""
        return pq.ParquetFile(io.BytesIO(self.body(f"{self.prefix}{self.database}/{table}/{name}")))

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of all files of the table in DMS's order."""
        tables = (self.file(table, name).read() for name in self.names(table))
        return [{name: normal(value) for name, value in row.items()} for table in tables for row in table.to_pylist()]

    def replayed(self, table: str, key: tuple[str, ...], columns: list[str]) -> list[Row]:
        """The rows that are left when every row of the files is applied in order; sorted as `sorted_rows` does."""
        left: dict[Row, Row] = {}
        for row in self.rows(table):
            at = tuple(row[name] for name in key)
            if row["Op"] == "D":
                left.pop(at, None)
            else:
                left[at] = tuple(row.get(name) for name in columns)
        return sorted_rows(list(left.values()))


def sorted_rows(rows: list[Row]) -> list[Row]:
    """In an order that doesn't depend on types: lists of rows are compared whole."""
    return sorted(rows, key=repr)

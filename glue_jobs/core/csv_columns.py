"""Which column each field of a CSV raw file is, and of which type: told from its first record, from its values, and from what is known.

What can't be told for sure is refused. Pure: the values come in as facts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from glue_jobs.core.csv_form import CsvForm
from glue_jobs.core.csv_refusals import Refusals
from glue_jobs.core.dms_columns import BEFORE_IMAGES, OP_COLUMN, SEQUENCE_COLUMN, before_images, excluded_columns
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.raw_reading import Reading
from glue_jobs.core.schema import Column, Schema, find, names, widened

LEAD = (OP_COLUMN, "", "")  # of a row in a file of several tables: operation, table, schema
_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d")
_OPERATIONS = ("I", "U", "D")


@dataclass(frozen=True)
class Facts:
    """What the values of one field are, over the whole file. operations: each is I, U or D; times: each reads as a commit time; least:
    the least of such, backward: how many are before their predecessor; valued: one is neither null nor empty. All false without a row."""

    operations: bool = False
    times: bool = False
    least: str = ""
    backward: int = 0
    valued: bool = False


@dataclass(frozen=True)
class CsvColumns:
    """fields: the column's name of each field, '' for one that is none. columns: what the lake takes up, in lake types, as far as types
    are known. timestamp: its name or None; confirmed: whether a person or the values said so."""

    fields: tuple[str, ...]
    columns: Schema
    timestamp: str | None = None
    confirmed: bool = False

    def place(self, name: str) -> int | None:
        """The field of a column, None if the file lacks it."""
        return self.fields.index(name) if name in self.fields else None


@dataclass(frozen=True)
class Table:
    """What is known beside the file: how to read it, where it is (for messages), and how before images are named."""

    reading: Reading
    where: str
    patterns: Sequence[str] = BEFORE_IMAGES

    @property
    def refused(self) -> Refusals:
        """What to say where the file can't be read."""
        return Refusals(self.reading, self.where)

    # --- the first record

    def is_header(self, first: Sequence[str]) -> bool:
        """Whether the first record has the columns' names. Raises TableBlocked where it could be either."""
        if first[0] == OP_COLUMN and len(first) > 1:
            return True
        known = {*names(self.reading.lake), *names(self.reading.form.schema), *names(self.reading.beside)}
        images = set(before_images(first, self.patterns).values())
        data = [name for name in first if name not in images and name not in (SEQUENCE_COLUMN, self.reading.timestamp_column)]
        hits = [name in known for name in data]
        if len(set(first)) == len(first) and data and all(hits):
            return True
        if first[0] in _OPERATIONS:
            return False
        if len(set(first)) == len(first) and len(data) > 1 and data[0] == first[0] and all(hits[1:]) and not _TIME.match(first[0]):
            return True  # the first is the commit time's name, which nothing said before
        if any(hits) and sum(hits) * 2 >= len(data):
            raise self.refused.header_unclear(first, [name for name in data if name not in known])
        return False

    def fields_to_look_at(self, first: Sequence[str] | None, header: bool, lead: int, with_images: bool = False) -> tuple[int, ...]:
        """The fields whose facts `columns` wants; with_images: and those of before images."""
        if not first:
            return ()
        wanted = {lead, lead + 1, *(self._image_places(first, header) if with_images else ())}
        if self.reading.timestamp_column:
            fields = list(first) if header else list(names(self.reading.form.schema))
            if self.reading.timestamp_column in fields:
                place = fields.index(self.reading.timestamp_column)
                wanted |= {place} if header else {lead + place, lead + place + 1}
        return tuple(sorted(place for place in wanted if 0 <= place < len(first)))

    def _image_places(self, first: Sequence[str], header: bool) -> list[int]:
        """The fields of before images; without a header a table's own columns are the last ones."""
        own = first if header else names(self._own())
        images = before_images(own, self.patterns).values()
        return [len(first) - len(own) + own.index(image) for image in images]

    def columns(self, first: Sequence[str] | None, header: bool, facts: Mapping[int, Facts], rows: int, lead: int = 0) -> CsvColumns:
        """What the fields are. first: the first record, None in an empty file. lead: how many fields of a row stand before a table's own
        (LEAD), 0 in a file of one table."""
        self._check_types()
        if first is None:
            there = tuple(column for column in self.reading.lake if not column.absent) or self._positions(first)
            return CsvColumns((), self._lake_columns(names(there), {}, 0))
        fields = tuple(first) if header else self._by_position(first, facts, lead)
        twice = sorted({name for name in fields if name and fields.count(name) > 1})
        if header and "" in fields:
            raise self.refused.nameless(fields)
        if twice:
            raise self.refused.column_twice(twice[0], fields)
        of_names = dict(zip(fields, (facts.get(place, Facts()) for place in range(len(fields)))))
        columns = self._lake_columns([name for name in fields if name], of_names, rows)
        timestamp, confirmed = self._timestamp(columns)
        return CsvColumns(fields, columns, timestamp, confirmed)

    def _timestamp(self, columns: Schema) -> tuple[str | None, bool]:
        """As of a Parquet file: the column that is named, else the first one if it can be."""
        named = self.reading.timestamp_column
        if named:
            return (named, True) if find(columns, named) else (None, False)
        return (columns[0].name, False) if columns and columns[0].type == "string" else (None, False)

    # --- types

    def _check_types(self) -> None:
        for column in self.reading.form.schema:
            there = find(self.reading.lake, column.name)
            if there is not None and widened(there.type, column.type) is None:
                raise self.refused.contradicts(there, column)

    def _type(self, name: str) -> str | None:
        """The type of a column, None if nothing says it: the lake's, or the wider one that Schema gives."""
        there, said = find(self.reading.lake, name), find(self.reading.form.schema, name)
        if there is not None and said is not None:
            return widened(there.type, said.type)
        found = there or said or find(self.reading.beside, name)
        return found.type if found else None

    def _lake_columns(self, fields: Sequence[str], facts: Mapping[str, Facts], rows: int) -> Schema:
        """What the lake takes up of these columns. Without a row a column of unknown type is left out."""
        left_out = {OP_COLUMN, *excluded_columns(fields, self.patterns)}
        data = [name for name in fields if name not in left_out]
        columns: list[Column] = []
        unknown: list[str] = []
        for name in data:
            kind = self._type(name)
            is_time = name == self.reading.timestamp_column or (name == data[0] and facts.get(name, Facts()).times)
            if kind is None and is_time and (rows or name == self.reading.timestamp_column):
                kind = "string"
            if kind is not None:
                columns.append(Column(name, kind))
            elif rows:
                unknown.append(name)
        if unknown:
            raise self.refused.needs_types(data, unknown)
        return tuple(columns)

    # --- without a header

    def _positions(self, first: Sequence[str] | None) -> Schema:
        """The table's own columns in the order of the fields."""
        own = self._own()
        if not self.reading.form.schema and (not own or any(column.added for column in own)):
            raise self.refused.needs_order(first, own)
        return own

    def _own(self) -> Schema:
        """The same as far as it is known, in whatever order the lake has them."""
        lake = tuple(column for column in self.reading.lake if not column.absent and column.name != self.reading.timestamp_column)
        return self.reading.form.schema or lake

    def _by_position(self, first: Sequence[str], facts: Mapping[int, Facts], lead: int) -> tuple[str, ...]:
        own = self._positions(first)
        if find(own, OP_COLUMN) is not None and lead:
            own = tuple(column for column in own if column.name != OP_COLUMN)
        extra = len(first) - lead - len(own)
        before = self._before_own(first, own, facts, extra, lead)
        return (*LEAD[:lead], *before, *names(own))

    def _before_own(self, first: Sequence[str], own: Schema, facts: Mapping[int, Facts], extra: int, lead: int) -> tuple[str, ...]:
        """The columns between the lead and the table's own: Op, the commit time, or both, as their number and the values say."""
        none = Facts()
        at_first, at_second = facts.get(lead, none), facts.get(lead + 1, none)
        time = self.reading.timestamp_column if find(own, self.reading.timestamp_column) is None else ""
        is_exact = find(own, OP_COLUMN) is not None
        may_have_op = not lead and not is_exact
        takes_op, takes_times = (bool(own) and own[0].type in kinds for kinds in (("string",), ("string", "timestamp")))
        other = self.refused.other_columns(first, own, len(first) - lead)
        if extra == 0:
            if may_have_op and at_first.operations:
                why = "its first field is I, U or D in every row, and could be the operation with a column gone"
                raise self.refused.unclear(first, own, why) if takes_op else other
            if time and at_first.times:
                raise self.refused.unclear(first, own, f"its first field could be {time!r} with a column gone") if takes_times else other
            return ()
        if extra == 1 and may_have_op and at_first.operations:
            if at_second.times and not takes_times:
                raise other
            if time and at_second.times:
                raise self.refused.unclear(first, own, f"its second field could be {time!r} with a column gone")
            return (OP_COLUMN,)
        if extra == 1 and not is_exact and at_first.times:
            return (self._named(time, first),)
        if extra == 2 and may_have_op and at_first.operations and at_second.times:
            if not time and takes_times and self.reading.lake:
                why = f"its second field could be the commit time, or {own[0].name!r} with a column added"
                raise self.refused.unclear(first, own, why)
            return OP_COLUMN, self._named(time, first)
        raise other

    def _named(self, time: str, first: Sequence[str]) -> str:
        if not time:
            raise self.refused.unnamed(first)
        return time


def form_used(reading: Reading) -> CsvForm:
    """The form to keep in a change's record: with the columns by which fields of files without names were read."""
    try:
        return replace(reading.form, schema=Table(reading, "")._positions(None))
    except TableBlocked:
        return reading.form  # then no such file was read

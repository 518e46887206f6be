"""A seeded random workload of several concurrent connections, with what is awkward for a capture."""

from __future__ import annotations

import string
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pymysql

from tests.database.rows import Row, select_all

Make = Callable[[Random], Any]
Connect = Callable[[], Any]
Step = Callable[[Any, Random, "Table"], None]

_ER_LOCK_WAIT_TIMEOUT, _ER_LOCK_DEADLOCK = 1205, 1213

TEXTS = ("", "NULL", "O'Brien", 'say "hi"', "back\\slash", "tab\tline\nend", "😀👍🏽", "naïve ‘quotes’", "日本語", "  ")


@dataclass(frozen=True)
class Column:
    """A column and what its values are made from."""

    name: str
    type: str
    make: Make


@dataclass
class Table:
    """A table of the workload. Its keys come from a small set, so that transactions meet."""

    name: str
    key: tuple[Column, ...]
    columns: list[Column]

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The key's column names."""
        return tuple(column.name for column in self.key)

    def create(self) -> str:
        """The CREATE TABLE statement."""
        columns = [f"`{column.name}` {column.type} NOT NULL" for column in self.key]
        columns += [f"`{column.name}` {column.type} NULL" for column in self.columns]
        return f"CREATE TABLE `{self.name}` ({', '.join(columns)}, PRIMARY KEY ({', '.join(self.primary_key)}))"


def _integer(low: int, high: int) -> Make:
    return lambda rng: rng.choice([low, high, 0, 1, rng.randint(low, high), rng.randint(low, high)])


def _decimal(digits: int, scale: int) -> Make:
    largest = 10**digits - 1
    # From text: arithmetic on decimals rounds to 28 digits.
    return lambda rng: Decimal(f"{rng.choice([0, largest, -largest, -1, rng.randint(-largest, largest)])}e-{scale}")


def _text(length: int) -> Make:
    def make(rng: Random) -> str:
        letters = "".join(rng.choices(string.ascii_letters + " éß😀'\"\\", k=rng.randint(0, length)))
        return rng.choice([rng.choice(TEXTS)[:length], letters])

    return make


def _bytes(length: int) -> Make:
    return lambda rng: rng.choice([b"", b"\0", b"\xff\0'\"", rng.randbytes(rng.randint(0, length))])[:length]


def _date(rng: Random) -> date:
    fixed = [date(1, 1, 1), date(1500, 2, 28), date(1899, 12, 31), date(3018, 1, 1), date(9999, 12, 31)]
    return rng.choice([*fixed, date(2000, 1, 1) + timedelta(days=rng.randint(0, 12_000))])


def _moment(digits: int) -> Make:
    step = 10 ** (6 - digits)

    def make(rng: Random) -> datetime:
        day, microseconds = _date(rng), rng.randrange(86_400_000_000 // step) * step
        return datetime(day.year, day.month, day.day) + timedelta(microseconds=microseconds)

    return make


def _timestamp(rng: Random) -> datetime:
    """MariaDB's TIMESTAMP: 1970 to 2038."""
    start = datetime(1970, 1, 1, 0, 0, 1)
    return start + timedelta(microseconds=rng.randrange(2_147_000_000_000_000))


def _time(rng: Random) -> str:
    sign, hours = rng.choice(["", "-"]), rng.choice([0, 1, 23, 24, 838])
    return f"{sign}{hours:02d}:{rng.randint(0, 59):02d}:{rng.randint(1, 58):02d}.{rng.randint(0, 999):03d}"


def _one_of(*values: Any) -> Make:
    return lambda rng: rng.choice(values)


def tables() -> list[Table]:
    """The workload's tables: a key of an integer, of text and unsigned bigint, of a date and a decimal."""
    everything = [
        Column("flag", "tinyint(1)", _integer(0, 1)),
        Column("tiny", "tinyint", _integer(-128, 127)),
        Column("tiny_u", "tinyint unsigned", _integer(0, 255)),
        Column("small", "smallint", _integer(-(2**15), 2**15 - 1)),
        Column("small_u", "smallint unsigned", _integer(0, 2**16 - 1)),
        Column("medium", "mediumint", _integer(-(2**23), 2**23 - 1)),
        Column("medium_u", "mediumint unsigned", _integer(0, 2**24 - 1)),
        Column("int_u", "int unsigned", _integer(0, 2**32 - 1)),
        Column("big", "bigint", _integer(-(2**63), 2**63 - 1)),
        Column("big_u", "bigint unsigned", _integer(0, 2**64 - 1)),
        Column("price", "decimal(10,2)", _decimal(10, 2)),
        Column("wide", "decimal(38,10)", _decimal(38, 10)),
        Column("fraction", "decimal(5,5)", _decimal(5, 5)),
        Column("real4", "float", lambda rng: rng.choice([0.1, -1.5, 16777217.0, 3.4e38, 1e-30, rng.random()])),
        Column("real8", "double", lambda rng: rng.choice([0.1, -1e308, 5e-324, rng.uniform(-1e9, 1e9)])),
        Column("day", "date", _date),
        Column("at6", "datetime(6)", _moment(6)),
        Column("at3", "datetime(3)", _moment(3)),
        Column("at0", "datetime", _moment(0)),
        Column("stamp", "timestamp(6)", _timestamp),
        Column("clock", "time(3)", _time),
        Column("in_year", "year", _one_of(1901, 2000, 2155)),
        Column("code", "char(10)", lambda rng: _text(10)(rng).rstrip(" ")),
        Column("name", "varchar(200)", _text(200)),
        Column("latin", "varchar(20) character set latin1", _one_of("café", "", "O'Neil", "£5")),
        Column("body", "text", _text(400)),
        Column("fixed", "binary(6)", _bytes(6)),
        Column("short_bytes", "varbinary(40)", _bytes(40)),
        Column("blob_bytes", "blob", _bytes(3000)),
        Column("on_off", "bit(1)", _integer(0, 1)),
        Column("bits", "bit(12)", _integer(0, 4095)),
        Column("kind", "enum('a','b b','ü')", _one_of("a", "b b", "ü")),
        Column("tags", "set('x','y','z')", _one_of("", "x", "x,z", "x,y,z")),
        Column("doc", "json", _one_of('{"a": [1, "é"]}', "[]", '"x"')),
    ]
    account = [Column("balance", "decimal(20,4)", _decimal(20, 4)), Column("note", "text", _text(60))]
    reading = [Column("value", "double", lambda rng: rng.uniform(-1, 1)), Column("raw", "blob", _bytes(80))]
    text_key = "varchar(12) character set utf8mb4 collate utf8mb4_bin"
    return [
        Table("everything", (Column("id", "int", lambda rng: rng.randint(-5, 60)),), everything),
        Table(
            "account",
            (
                Column("region", text_key, _one_of("eu", "EU", "ü", "😀", "o'k", "")),
                Column("number", "bigint unsigned", _one_of(0, 1, 2**63, 2**64 - 1)),
            ),
            account,
        ),
        Table(
            "reading",
            (
                Column("on_day", "date", _one_of(date(1, 1, 1), date(1999, 12, 31), date(3018, 5, 5))),
                Column("step", "decimal(6,2)", _one_of(*(Decimal(n).scaleb(-2) for n in (-5, 0, 5, 100, 999999)))),
            ),
            reading,
        ),
    ]


@dataclass
class Workload:
    """Random transactions on the tables above, the same for the same seed up to how the server interleaves them.

    `connect` gives a new connection to the database, without autocommit. Primary keys are changed only if `changes_keys`.
    """

    connect: Connect
    seed: int
    connections: int = 3
    changes_keys: bool = False
    tables: list[Table] = field(default_factory=tables)
    _round: int = 0
    _added: int = 0

    def create(self) -> None:
        """Create the tables, empty."""
        self._execute(*(table.create() for table in self.tables))

    def add_column(self, name: str = "everything") -> str:
        """Add a nullable column at the end of the table; later rounds fill it. Its name is the answer."""
        self._added += 1
        kinds = [("varchar(30)", _text(30)), ("decimal(12,3)", _decimal(12, 3)), ("datetime(6)", _moment(6))]
        column = Column(f"added{self._added}", *kinds[self._added % len(kinds)])
        self._execute(f"ALTER TABLE `{name}` ADD COLUMN `{column.name}` {column.type} NULL")
        self.table(name).columns.append(column)
        return column.name

    def table(self, name: str) -> Table:
        """The table of that name."""
        return next(table for table in self.tables if table.name == name)

    def round(self, transactions: int = 40) -> None:
        """Run about so many transactions, spread over the connections at the same time; return when all have ended."""
        self._round += 1
        errors: list[BaseException] = []
        steps = [*STEPS, _move, _move] if self.changes_keys else STEPS

        def run(worker: int) -> None:
            rng = Random(f"{self.seed} {self._round} {worker}")
            try:
                with self.connect() as connection:
                    for _ in range(-(-transactions // self.connections)):
                        _transaction(connection, rng, self.tables, steps)
            except BaseException as error:  # noqa: BLE001  handed to the thread that waits
                errors.append(error)

        threads = [threading.Thread(target=run, args=[worker]) for worker in range(self.connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def rows(self, name: str) -> tuple[list[str], list[Row]]:
        """The table's columns and rows as they are in the database now: see `select_all`."""
        with self.connect() as connection:
            return select_all(connection, name)

    def _execute(self, *statements: str) -> None:
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


def _transaction(connection: Any, rng: Random, choices: Sequence[Table], steps: Sequence[Step]) -> None:
    """One to five steps, then mostly COMMIT. A deadlock's victim is rolled back by the server, and left at that."""
    try:
        with connection.cursor() as cursor:
            for _ in range(rng.randint(1, 5)):
                rng.choice(steps)(cursor, rng, rng.choice(choices))
    except pymysql.OperationalError as error:
        if error.args[0] not in (_ER_LOCK_WAIT_TIMEOUT, _ER_LOCK_DEADLOCK):
            raise
        connection.rollback()
    if rng.random() < 0.2:
        connection.rollback()
    else:
        connection.commit()


def _insert(cursor: Any, rng: Random, table: Table) -> None:
    """One or several rows; keys that exist are replaced, updated or left."""
    columns = [*table.key, *table.columns]
    names = ", ".join(f"`{column.name}`" for column in columns)
    rows = [[*(c.make(rng) for c in table.key), *_values(rng, table.columns)] for _ in range(rng.choice([1, 1, 5]))]
    places = ", ".join([f"({', '.join(['%s'] * len(columns))})"] * len(rows))
    verb, tail = rng.choice(
        [
            ("INSERT", f" ON DUPLICATE KEY UPDATE {_assigned(rng, table.columns, 'VALUES(`{0}`)')[0]}"),
            ("INSERT IGNORE", ""),
            ("REPLACE", ""),
        ]
    )
    cursor.execute(f"{verb} INTO `{table.name}` ({names}) VALUES {places}{tail}", [v for row in rows for v in row])


def _update(cursor: Any, rng: Random, table: Table) -> None:
    """Some columns, of one key or of all rows whose key begins alike."""
    assigned, columns = _assigned(rng, table.columns, "%s")
    wanted = table.key[: rng.randint(1, len(table.key))]
    condition = " AND ".join(f"`{column.name}` = %s" for column in wanted)
    values = [*_values(rng, columns), *(column.make(rng) for column in wanted)]
    cursor.execute(f"UPDATE `{table.name}` SET {assigned} WHERE {condition}", values)


def _delete(cursor: Any, rng: Random, table: Table) -> None:
    """One key, sometimes more."""
    wanted = table.key if rng.random() < 0.8 else table.key[:1]
    condition = " AND ".join(f"`{column.name}` = %s" for column in wanted)
    cursor.execute(f"DELETE FROM `{table.name}` WHERE {condition}", [column.make(rng) for column in wanted])


def _one_key(cursor: Any, rng: Random, table: Table) -> None:
    """Insert, update, delete and perhaps insert one key again."""
    key = [column.make(rng) for column in table.key]
    condition = " AND ".join(f"`{column.name}` = %s" for column in table.key)
    names = ", ".join(f"`{column.name}`" for column in [*table.key, *table.columns])
    places = ", ".join(["%s"] * (len(table.key) + len(table.columns)))
    insert = f"INSERT INTO `{table.name}` ({names}) VALUES ({places})"
    assigned, columns = _assigned(rng, table.columns, "%s")
    cursor.execute(f"DELETE FROM `{table.name}` WHERE {condition}", key)
    cursor.execute(insert, [*key, *_values(rng, table.columns)])
    cursor.execute(f"UPDATE `{table.name}` SET {assigned} WHERE {condition}", [*_values(rng, columns), *key])
    cursor.execute(f"DELETE FROM `{table.name}` WHERE {condition}", key)
    if rng.random() < 0.5:
        cursor.execute(insert, [*key, *_values(rng, table.columns)])


def _undone(cursor: Any, rng: Random, table: Table) -> None:
    """Work behind a savepoint that is rolled back, with a statement after it."""
    cursor.execute("SAVEPOINT before_it")
    _insert(cursor, rng, table)
    _delete(cursor, rng, table)
    cursor.execute("ROLLBACK TO SAVEPOINT before_it")
    _update(cursor, rng, table)


def _move(cursor: Any, rng: Random, table: Table) -> None:
    """A new key for one row, or for those of several rows whose new keys are free."""
    wanted = table.key[: rng.randint(1, len(table.key))]
    assigned = ", ".join(f"`{column.name}` = %s" for column in table.key)
    condition = " AND ".join(f"`{column.name}` = %s" for column in wanted)
    values = [*(column.make(rng) for column in table.key), *(column.make(rng) for column in wanted)]
    cursor.execute(f"UPDATE IGNORE `{table.name}` SET {assigned} WHERE {condition}", values)


STEPS: tuple[Step, ...] = (_insert, _insert, _insert, _update, _update, _delete, _one_key, _undone)


def _assigned(rng: Random, columns: Sequence[Column], form: str) -> tuple[str, list[Column]]:
    """`a = form, …` for some of the columns, and those columns."""
    chosen = rng.sample(list(columns), rng.randint(1, min(4, len(columns))))
    return ", ".join(f"`{column.name}` = {form.format(column.name)}" for column in chosen), chosen


def _values(rng: Random, columns: Sequence[Column]) -> list[Any]:
    return [None if rng.random() < 0.15 else column.make(rng) for column in columns]

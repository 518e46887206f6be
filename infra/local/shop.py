"""A shop's database for demonstrations: its rows, what happens in it, and the files that DMS would write of that.

    python -m infra.local.shop    writes to $DMSLAKE_RAW: the first call the full load, each further one a round of changes

Everything follows from fixed seeds, so that the shop of round n is the same wherever it is built.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa

from controller.raw_scope import RawScope
from glue_jobs.aws.clients import make_clients
from glue_jobs.core.errors import UsageError
from glue_jobs.core.paths import S3Uri
from glue_jobs.core.printable import error_lines
from infra.local.dms_files import CdcFileNames, DmsRow, dms_parquet, dms_table, load_file_name

SCHEMA = "shop"
STORES, PRODUCTS, ORDERS = "stores", "products", "orders"
FIRST_DAY, DAYS, FIRST_ORDERS = date(2024, 1, 1), 180, 1200
_PRODUCTS = (
    "Trail Lantern|Head Lamp|Two Person Tent|Sleeping Bag|Folding Chair|Steel Bottle|Water Filter|Chef's Knife|Bread Knife|Cutting Board|"
    "Mixing Bowls|Cast Iron Pan|Stock Pot|Moka Pot|Café Grinder|Desk Lamp|Notebook, Dotted|Fountain Pen|Ink, Midnight Blue|Standing Desk|"
    "Monitor Arm|Garden Shears|Hand Trowel|Seed Box|Rain Gauge"
).split("|")
_CITIES = "Portland|Burlington|Ithaca|Richmond|Savannah|Omaha|Santa Fe|Astoria".split("|")
_CENT = Decimal("0.01")

Row = dict[str, Any]


@dataclass(frozen=True)
class ShopTable:
    """A table's columns and what a person would write into its item. The key is always `id`."""

    columns: pa.Schema
    partition_key: str = "null"
    primary_key: str = "id"


TABLES: Mapping[str, ShopTable] = {
    STORES: ShopTable(pa.schema([("id", pa.int32()), ("city", pa.string()), ("opened", pa.date32())])),
    PRODUCTS: ShopTable(pa.schema([("id", pa.int32()), ("name", pa.string()), ("price", pa.decimal128(10, 2))])),
    ORDERS: ShopTable(
        pa.schema(
            [
                ("id", pa.int32()),
                ("order_date", pa.date32()),
                ("store_id", pa.int32()),
                ("product_id", pa.int32()),
                ("qty", pa.int32()),
                ("amount", pa.decimal128(10, 2)),
                ("status", pa.string()),
            ]
        ),
        partition_key="year(order_date),month(order_date)",
    ),
}


@dataclass
class Shop:
    """The database. rows: table → key → row; columns: table → schema as of now; cdc: the CDC rows since the last `take`."""

    rows: dict[str, dict[int, Row]] = field(default_factory=dict)
    columns: dict[str, pa.Schema] = field(default_factory=dict)
    cdc: dict[str, list[DmsRow]] = field(default_factory=dict)

    def insert(self, table: str, **values: Any) -> int:
        """Insert a row with the next free key; the key."""
        key = max(self.rows[table], default=0) + 1
        self._write("I", table, {"id": key, **values})
        return key

    def update(self, table: str, key: int, **values: Any) -> None:
        self._write("U", table, {**self.rows[table][key], **values})

    def delete(self, table: str, key: int) -> None:
        self._write("D", table, self.rows[table][key])

    def add_column(self, table: str, name: str, kind: pa.DataType) -> None:
        """As ALTER TABLE ADD COLUMN: the rows that are there get null, and DMS writes nothing about it."""
        self.columns[table] = self.columns[table].append(pa.field(name, kind))
        for row in self.rows[table].values():
            row[name] = None

    def _write(self, op: str, table: str, row: Row) -> None:
        full = {name: row.get(name) for name in self.columns[table].names}
        if op == "D":
            del self.rows[table][row["id"]]
        else:
            self.rows[table][row["id"]] = full
        self.cdc.setdefault(table, []).append(DmsRow(op, full))

    def take(self) -> dict[str, list[DmsRow]]:
        """The CDC rows since the last take, by table; the capture of a round."""
        taken, self.cdc = self.cdc, {}
        return taken


def open_shop() -> Shop:
    """The shop as the full load finds it: 8 stores, 25 products, 1,200 orders of six months."""
    chance = random.Random(2024)
    shop = Shop({table: {} for table in TABLES}, {table: kind.columns for table, kind in TABLES.items()})
    for number, city in enumerate(_CITIES):
        shop.insert(STORES, city=city, opened=date(2015 + number, 1 + number, 10))
    for name in _PRODUCTS:
        shop.insert(PRODUCTS, name=name, price=Decimal(chance.randrange(990, 19990, 10)) * _CENT)
    for number in range(FIRST_ORDERS):
        day = FIRST_DAY + timedelta(days=number * DAYS // FIRST_ORDERS)
        _order(shop, chance, day, "new" if number > FIRST_ORDERS - 60 else "shipped")
    shop.take()
    return shop


def _order(shop: Shop, chance: random.Random, day: date, status: str = "new", **more: Any) -> int:
    """A new order of one of the products and stores that are there."""
    product = chance.choice(sorted(shop.rows[PRODUCTS]))
    qty = chance.randint(1, 5)
    amount = shop.rows[PRODUCTS][product]["price"] * qty
    store = chance.choice(sorted(shop.rows[STORES]))
    return shop.insert(ORDERS, order_date=day, store_id=store, product_id=product, qty=qty, amount=amount, status=status, **more)


def first_round(shop: Shop) -> list[str]:
    """Updates, a delete, inserts, and several changes of one key in one file; what happened, as sentences."""
    chance = random.Random(1)
    shop.insert(STORES, city="Juneau", opened=date(2024, 7, 1))
    for change in ("10.00", "-15.00", "-5.00"):
        shop.update(PRODUCTS, 14, price=shop.rows[PRODUCTS][14]["price"] + Decimal(change))
    shop.delete(PRODUCTS, 25)
    for order in (1180, 1181, 1182):
        shop.update(ORDERS, order, status="shipped")
    quick = _order(shop, chance, date(2024, 7, 1))
    for status in ("paid", "shipped"):
        shop.update(ORDERS, quick, status=status)
    for number in range(39):
        _order(shop, chance, date(2024, 7, 1 + number // 4))
    return [
        "stores: a ninth store opens",
        "products: the price of product 14 changes three times, all in one file; product 25 is deleted",
        f"orders: 40 new ones, all of July; order {quick} is paid and shipped in the file that brings it; three older ones are shipped",
    ]


def second_round(shop: Shop) -> list[str]:
    """A new column, a row that moves to another partition, a delete, and an order that comes and goes within one file."""
    chance = random.Random(2)
    shop.add_column(ORDERS, "coupon", pa.string())
    for number in range(25):
        _order(shop, chance, date(2024, 7, 12 + number // 5), coupon="SUMMER-10" if number % 5 == 0 else None)
    shop.update(ORDERS, 7, order_date=date(2024, 3, 2))
    shop.delete(ORDERS, 1190)
    withdrawn = _order(shop, chance, date(2024, 7, 17))
    shop.delete(ORDERS, withdrawn)
    return [
        "orders: a column, coupon, is added; 25 new orders",
        "orders: the date of order 7 is corrected from January to March, so that it moves to another partition; order 1190 is deleted",
        f"orders: order {withdrawn} is placed and withdrawn within one file",
    ]


def later_round(number: int) -> Callable[[Shop], list[str]]:
    """Round `number`, from 3: some of everything."""

    def happen(shop: Shop) -> list[str]:
        chance = random.Random(number)
        day = date(2024, 7, 10) + timedelta(days=7 * (number - 2))
        for _ in range(20):
            _order(shop, chance, day)
        for order in chance.sample(sorted(shop.rows[ORDERS]), 5):
            shop.update(ORDERS, order, status="returned")
        shop.delete(ORDERS, chance.choice(sorted(shop.rows[ORDERS])))
        product = chance.choice(sorted(shop.rows[PRODUCTS]))
        shop.update(PRODUCTS, product, price=shop.rows[PRODUCTS][product]["price"] + Decimal("1.00"))
        return ["orders: 20 new ones, 5 returned, 1 deleted", f"products: product {product} costs 1.00 more"]

    return happen


def round_of(number: int) -> Callable[[Shop], list[str]]:
    """What happens in round `number`, counted from 1."""
    return {1: first_round, 2: second_round}.get(number) or later_round(number)


@dataclass(frozen=True)
class Written:
    """A file that was put below raw, and how many rows it has."""

    table: str
    name: str
    rows: int


class Feed:
    """Puts the shop's files below `raw` (`s3://bucket/prefix/`), named as DMS names them."""

    def __init__(self, s3: Any, raw: str) -> None:
        self._s3 = s3
        self._raw = S3Uri.folder(raw).join(SCHEMA, "/")
        self._names: dict[str, CdcFileNames] = {table: CdcFileNames() for table in TABLES}

    def names(self, table: str) -> list[str]:
        """The names of the table's files that are there, in order."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._raw.bucket, Prefix=f"{self._raw.key}{table}/")
        return sorted(item["Key"].rpartition("/")[2] for page in pages for item in page.get("Contents", ()))

    def full_load(self, shop: Shop) -> list[Written]:
        """A load file per table."""
        written = []
        for table, rows in shop.rows.items():
            loaded = [DmsRow("I", row) for row in rows.values()]
            written.append(self._put(shop, table, load_file_name(1), loaded))
        return written

    def changes(self, shop: Shop, now: datetime) -> list[Written]:
        """A CDC file per table that changed."""
        written = []
        for table, rows in shop.take().items():
            names = self._names[table]
            there = [name for name in self.names(table) if not name.startswith("LOAD")]
            names.last = max(filter(None, (names.last, *there)), default=None)
            written.append(self._put(shop, table, names.next(now), rows))
        return written

    def _put(self, shop: Shop, table: str, name: str, rows: Sequence[DmsRow]) -> Written:
        data = dms_parquet(dms_table(shop.columns[table], rows))
        self._s3.put_object(Bucket=self._raw.bucket, Key=f"{self._raw.key}{table}/{name}", Body=data)
        return Written(table, name, len(rows))


def feed_next(s3: Any, raw: str, now: datetime) -> list[str]:
    """Write the full load, or the round after those that are there; lines that say what was written."""
    feed, shop = Feed(s3, raw), open_shop()
    there = feed.names(ORDERS)
    if there:
        done = sum(not name.startswith("LOAD") for name in there)
        for number in range(1, done + 1):
            round_of(number)(shop)
        shop.take()
        said = round_of(done + 1)(shop)
        written = feed.changes(shop, now)
    else:
        said = ["the full load of a shop"]
        written = feed.full_load(shop)
    return [*said, *(f"  {raw}{SCHEMA}/{file.table}/{file.name}  {file.rows} rows" for file in written)]


def main(variables: Mapping[str, str]) -> int:
    """Write what comes next to $DMSLAKE_RAW."""
    raw = variables.get("DMSLAKE_RAW", "")
    if not raw:
        print("DMSLAKE_RAW is not set: start `dmslake up` and paste the lines it prints into this shell", file=sys.stderr)
        return 3
    try:
        folder = RawScope.parse(raw).folder_to_write()
    except UsageError as error:
        print(*error_lines(error), sep="\n", file=sys.stderr)
        return error.exit_code
    for line in feed_next(make_clients(variables).s3, folder, datetime.now(timezone.utc)):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))

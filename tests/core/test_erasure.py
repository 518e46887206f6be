"""Erasing, its values: texts and hashes of keys, lists and their digests, and the plan."""

from __future__ import annotations

from decimal import Decimal

import pytest

from glue_jobs.core.erase_plan import Found, HeldVersion, Hit, Searchable, is_attachment, own_hits, plan_of, with_history
from glue_jobs.core.erasure import Erased, canonical, digest_of, erased_by, hashed, key_text, texts_among, version_erased
from glue_jobs.core.errors import TableBlocked
from glue_jobs.core.keys import NAN, float_key
from glue_jobs.core.record import DataFile, ErasedVersion
from tests.core.records import minimal

SALT = "00" * 16
LAKE = "lake/shop/t/"


@pytest.mark.parametrize("value", [5, Decimal("5"), Decimal("5.00"), float_key(5.0), b"5"], ids=str)
def test_a_key_keeps_its_text_when_its_type_grows(value: object) -> None:
    """So a key that comes back with a wider column is known."""
    assert canonical(value) == "5"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1.50"), "1.5"),
        (Decimal("-0.0"), "0"),
        (Decimal("1E+2"), "100"),
        (float_key(float("inf")), "inf"),
        (NAN, "NaN"),
        (b"\xff", "\\xff"),
    ],
    ids=str,
)
def test_odd_values_have_a_text(value: object, text: str) -> None:
    """One for each value."""
    assert canonical(value) == text


def test_a_key_of_several_columns_is_not_another_one() -> None:
    """Where the values meet is part of the text."""
    assert len({key_text([b"a", b"b,c"]), key_text([b"a,b", b"c"]), key_text([b"a", b"b", b"c"])}) == 3


def test_hashes_tell_keys_and_need_the_salt() -> None:
    """The same key has the same hash under one salt only."""
    texts = [key_text([number]) for number in range(3)]
    keys = hashed(("id",), SALT, texts[:2])

    assert texts_among(keys, texts) == set(texts[:2])
    assert texts_among(hashed(("id",), "11" * 16, texts[2:]), texts) == {texts[2]}
    assert set(keys.hashes).isdisjoint(hashed(("id",), "11" * 16, texts[:2]).hashes)


def test_the_digest_is_of_versions_and_keys_whatever_their_order() -> None:
    """One version or key more, or another one, or a key of another column, is another list."""
    one, two = ErasedVersion("a", "1"), ErasedVersion("b", "2")
    shown = digest_of([one, two], ("id",), ("x", "y"))

    assert digest_of([two, one], ("id",), ("y", "x")) == shown
    others = [digest_of(versions, ("id",), ("x", "y")) for versions in ([], [one], [two], [ErasedVersion("a1", "")])]
    others += [digest_of([one, two], ("id",), texts) for texts in ((), ("x",), ("x", "z"), ("x", "y", "z"))]
    assert len({shown, *others, digest_of([one, two], ("name",), ("x", "y"))}) == 10


def test_what_is_erased_is_known_by_version_and_by_key() -> None:
    """The first erase that has it on its list is named."""
    record = minimal(erased=(ErasedVersion("a", "1"),), kind="erase")

    erased = erased_by([record])

    assert (erased.has("a", "1"), erased.has("a", "2"), erased.change_of("a"), erased.change_of("b")) == (True, False, record.id, "")


def hit(
    path: str, version: str = "v", size: int = 10, etag: str = "e", rows: int = 1, keys: tuple[int, ...] = (0,), visible: bool = False
) -> Hit:
    return Hit(Searchable(HeldVersion(LAKE + path, version, size, etag, visible), path), keys, rows)


def test_a_plan_lists_head_files_and_older_versions() -> None:
    """Rows are those of the head; versions are all."""
    files = {"now.parquet": DataFile("now.parquet", 10, 5, "e")}
    found = Found(("id",), ("secret", "other"), (hit("now.parquet", rows=2), hit("old.parquet", keys=(1,)), hit("old.parquet", "w")))

    plan = plan_of("head", files, found, ["other"], Erased(), LAKE)

    assert (plan.rows, plan.files, plan.found_keys, plan.keys, plan.size_bytes) == (2, ("now.parquet",), 2, 2, 30)
    assert [(each.key, each.version) for each in plan.versions] == [
        (LAKE + "now.parquet", "v"),
        (LAKE + "old.parquet", "v"),
        (LAKE + "old.parquet", "w"),
    ]
    assert "secret" not in str(plan)


def test_plans_of_the_same_versions_for_other_keys_are_told_apart() -> None:
    """With a history table as without one; what is logged of a plan says no key."""
    hits = (hit("old.parquet"),)
    plans = [plan_of("head", {}, Found(("id",), texts, hits), [], Erased(), LAKE) for texts in (("secret",), ("other",))]
    kept = [with_history(plan, Found(("id",), plan.texts, hits), plan, Found(("id",), plan.texts)) for plan in plans]

    assert plans[0].versions == plans[1].versions
    assert (plans[0].digest == plans[1].digest, kept[0].digest == kept[1].digest) == (False, False)
    assert "secret" not in f"{kept[0]} {kept[0].facts()}"


def test_what_an_earlier_erase_lists_is_not_listed_again() -> None:
    """That one removes it."""
    found = Found(("id",), ("a",), (hit("old.parquet"),))
    earlier = Erased({(LAKE + "old.parquet", "v"): "change"}, {LAKE + "old.parquet": "change"})

    assert plan_of("head", {}, found, [], earlier, LAKE).versions == ()


def test_a_file_of_the_head_that_somebody_wrote_over_is_refused() -> None:
    """Readers see other rows than the record says, which is to be put right first."""
    files = {"now.parquet": DataFile("now.parquet", 10, 5, "e")}
    found = Found(("id",), ("a",), (hit("now.parquet", size=11, visible=True),))

    with pytest.raises(TableBlocked, match="somebody else wrote"):
        plan_of("head", files, found, [], Erased(), LAKE)


def test_bytes_below_a_file_of_the_head_go_with_it() -> None:
    """They are on the list, their rows are none of the table's, and the file is one to write anew also where it has no key itself."""
    files = {name: DataFile(name, 10, 5, "e") for name in ("both", "below")}
    found = Found(("id",), ("a",), (hit("both", rows=2), hit("both", "w", etag="f", rows=3), hit("below", "w", size=9), hit("both", "x")))

    plan = plan_of("head", files, found, [], Erased(), LAKE)

    assert (plan.rows, plan.files, [each.version for each in plan.versions]) == (1, ("below", "both"), ["w", "v", "w", "x"])
    assert {path: each.item.held.version for path, each in own_hits(files, found.hits).items()} == {"both": "x"}


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("0000000001-000001-00000000.rows.parquet", True),
        ("0000000001-000001-00000000.json", False),
        ("mine.parquet", False),
        ("inner/0000000001-000001-00000000.rows.parquet", False),
    ],
)
def test_rows_beside_a_record_are_told_from_records(name: str, is_one: bool) -> None:
    """By the change's id and the ending, and never those of a table whose folder is inside."""
    assert is_attachment(name) is is_one


def test_the_error_names_the_erase() -> None:
    """And what to do."""
    error = version_erased("lake", "key", "0000000001-000001-00000000", "a data file")

    assert (error.code, "0000000001-000001-00000000" in error.message, "dmslake history" in error.todo) == ("version-erased", True, True)

"""Collations: names and words, the form of a text, and key columns that know how they compare."""

from __future__ import annotations

import copy
import json
import pickle
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.collation import (
    EXACT,
    Collation,
    KeyColumn,
    collated,
    collated_as,
    collation_of,
    column_collation,
    is_same_key,
    key_text,
    parse_collation,
)
from glue_jobs.core.errors import UsageError

COLLATIONS = st.builds(Collation, st.booleans(), st.booleans(), st.booleans(), width=st.booleans()) | st.builds(
    Collation, pad=st.booleans(), general=st.just(True)
)
# Letters whose small or decomposed form is odd, marks, blanks and some of every kind of text.
HARD = "aAéÉß ſ´¨йЙиёЁآأاςΣİıIǅﬁÅÅ①Ａ￫ガがパ한ก็ำकिकुक्ष्\u0301\u0308\u0345\u200d\u00a0\u1e9e\u0130"
TEXTS = st.text(st.sampled_from(HARD) | st.characters(exclude_categories=["Cs"]), max_size=8)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ("ci", "ci"),
        ("pad, AI ,ci", "ci,ai,pad"),
        ("utf8mb4_general_ci", "general,pad"),
        ("utf8mb3_general_nopad_ci", "general"),
        ("pad,width,ci", "ci,width,pad"),
        ("utf8_unicode_ci", "ci,ai,pad"),
        ("utf8mb4_0900_ai_ci", "ci,ai"),
        ("utf8mb4_0900_as_ci", "ci"),
        ("utf8mb4_0900_as_cs", ""),
        ("utf8mb4_bin", "pad"),
        ("utf8mb4_0900_bin", ""),
        ("utf8mb4_nopad_bin", ""),
        ("utf8mb4_uca1400_nopad_as_ci", "ci"),
        ("latin1_bin", "pad"),
        ("binary", ""),
        ("SQL_Latin1_General_CP1_CI_AS", "ci,pad"),
        ("Latin1_General_100_CI_AI_SC_UTF8", "ci,ai,pad"),
        ("Latin1_General_CS_AS_KS_WS", "pad"),
        ("Latin1_General_CI_AS_KS_WS", "ci,width,pad"),
        ("Latin1_General_BIN2", "pad"),
        ("Finnish_Swedish_CI_AS", "ci,pad"),
    ],
)
def test_names_and_words(text: str, words: str) -> None:
    """As MySQL, MariaDB and SQL Server write them, whatever the case; the words read as themselves."""
    collation = parse_collation(text)

    assert str(collation) == words
    assert parse_collation(str(collation)) == collation


@pytest.mark.parametrize(
    "text",
    [
        "latin1_swedish_ci",
        "utf8mb4_swedish_ci",
        "Turkish_CI_AS",
        "Finnish_Swedish_CI_AI",
        "nocase",
        "ci,xi",
        "utf8mb4_ci",
        "utf8_general_mysql500_ci",
    ],
)
def test_what_the_words_can_not_say_is_refused_by_name(text: str) -> None:
    """A language's own letters would be taken for others, and rows lost."""
    with pytest.raises(UsageError, match=text.rpartition(",")[2]):
        parse_collation(text)


@pytest.mark.parametrize("other", ["ci", "ai", "width"])
def test_general_stands_in_the_place_of_other_words(other: str) -> None:
    """Together they would be coarser than any collation."""
    with pytest.raises(UsageError, match="the word general"):
        parse_collation(f"general,{other}")


@pytest.mark.parametrize(
    ("collation", "same", "other"),
    [
        ("ci", ("abc", "ABC", "ＡＢＣ"), "ábc"),
        ("ci", ("é", "É", "e\u0301"), "e"),
        ("ci", ("Σίσυφος", "ΣΊΣΥΦΟΣ", "σίσυφοσ"), "Σισυφοσ"),
        ("ci", ("İ", "i\u0307"), "ı"),
        ("ai", ("é", "e", "e\u0301"), "E"),
        ("ai", ("が", "か"), "ガ"),
        ("ai", ("किन", "किन"), "कुन"),
        ("ai", ("ё", "е"), "э"),
        ("ai", ("й", "и\u0306", "й\u0301"), "и"),
        ("ci,ai", ("Ї", "ї"), "і"),
        ("ai", ("\u0627",), "\u0622"),
        ("ai", ("´",), " "),
        ("ci", ("m²", "M2"), "m3"),
        ("ci,width", ("m²", "M²"), "m2"),
        ("ci,width", ("é", "E\u0301"), "ＡÉ"),
        ("general", ("Crème", "CREME"), "Cre\u0300me"),
        ("general", ("Straße", "STRASE"), "Strasse"),
        ("general", ("ﬁ",), "fi"),
        ("general", ("й", "Й"), "и"),
        ("general", ("😀", "😁"), "a"),
        ("general,pad", ("É ", "e"), "e\t"),
        ("pad", ("a", "a  "), "a\t"),
        ("ci,ai,pad", ("Crème ", "CREME"), "crem"),
        ("", ("a",), "a "),
    ],
)
def test_what_is_one_key(collation: str, same: tuple[str, ...], other: str) -> None:
    """And what is not; the sign of a vowel is no accent."""
    forms = {parse_collation(collation).form(text) for text in same}

    assert len(forms) == 1
    assert parse_collation(collation).form(other) not in forms


@given(COLLATIONS, TEXTS)
def test_a_form_stands_for_itself(collation: Collation, text: str) -> None:
    """Keys are often brought into the form twice: once packed, once compared."""
    form = collation.form(text)

    assert collation.form(form) == form
    assert collation or form == text


@given(COLLATIONS, TEXTS, TEXTS)
def test_a_coarser_collation_takes_no_keys_apart(collation: Collation, one: str, other: str) -> None:
    """What is one key without a word still is with it."""
    by_case = collation if collation.general else Collation(True, collation.ai, collation.pad)
    for coarser in (by_case, Collation(collation.ci, collation.ai, True, collation.general)):
        if collation.form(one) == collation.form(other):
            assert coarser.form(one) == coarser.form(other)


@given(TEXTS)
def test_capital_and_small_letters_are_one(text: str) -> None:
    """Letter by letter: what makes two letters of one is no other case of it."""
    single = [char for char in text if len(char.swapcase()) == 1 and char.swapcase().swapcase() == char and not unicodedata.combining(char)]
    ci = Collation(ci=True)

    assert ci.form("".join(single)) == ci.form("".join(char.swapcase() for char in single))


def test_a_key_column_is_its_name() -> None:
    """It is found, written and compared as that, and keeps what it knows on the way to another process."""
    column = KeyColumn("name", Collation(ci=True))

    assert column == "name"
    assert {"name": 1}[column] == 1
    assert json.dumps([column]) == '["name"]'
    for copied in (pickle.loads(pickle.dumps(column)), copy.deepcopy(column)):
        assert column_collation(copied) == Collation(ci=True)


def test_columns_that_a_person_names_compare_as_in_the_key() -> None:
    """Others compare by their bytes."""
    key = collated(("region", "name"), Collation(ci=True, pad=True))

    named = collated_as(("name", "mail"), key)

    assert [str(column_collation(name)) for name in named] == ["ci,pad", ""]
    assert collation_of(named) == Collation(ci=True, pad=True)


def test_the_same_columns_under_another_collation_are_another_key() -> None:
    """Though each name equals the other."""
    key = collated(("name",), Collation(ci=True))

    assert key == ("name",)
    assert not is_same_key(key, ("name",))
    assert is_same_key(key, collated(key, Collation(ci=True)))
    assert is_same_key(collated(key, EXACT), ("name",))


@pytest.mark.parametrize(("words", "text"), [("", "shop,name"), ("ci,pad", "shop,name (ci,pad)")])
def test_a_key_is_shown_with_how_it_compares(words: str, text: str) -> None:
    """So that `show` and `diff` tell that it changed."""
    assert key_text(collated(("shop", "name"), parse_collation(words))) == text

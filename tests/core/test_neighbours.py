"""Which small files are rewritten as one: those that follow on each other, and no others."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue_jobs.core.limits import Limits
from glue_jobs.core.neighbours import ENOUGH, MANY_FILES, MORE_MET, MOST_FILES, Group, Tidied, is_ascending, neighbours, to_tidy
from glue_jobs.core.record import DataFile

KEY = ("bigint",)
SMALL, MANY = 100, 10_000


def ranged(number: int, low: int, high: int, size: int = 10, partition: str = "a") -> DataFile:
    return DataFile(f"{partition}/{number}.parquet", size, 1, partition=(partition,), low=(low,), high=(high,))


def row_of(count: int, size: int = 10) -> list[DataFile]:
    """Files whose ranges follow on each other."""
    return [ranged(number, number * 10, number * 10 + 9, size) for number in range(count)]


def paths(groups: list[Group]) -> list[list[str]]:
    return sorted([file.path.split("/")[1].split(".")[0] for file in group] for group in groups)


def test_files_that_follow_on_each_other_are_one_group() -> None:
    files = row_of(5)

    assert paths(neighbours(files[::-1], files, KEY, SMALL, MANY)) == [["0", "1", "2", "3", "4"]]


def test_a_file_between_that_is_not_rewritten_parts_them() -> None:
    files = row_of(5)

    assert paths(neighbours([*files[:2], *files[3:]], files, KEY, SMALL, MANY)) == [["0", "1"], ["3", "4"]]


def test_large_files_and_other_partitions_stand_alone() -> None:
    large = ranged(1, 10, 19, SMALL)
    other = ranged(3, 30, 39, partition="b")
    files = [ranged(0, 0, 9), large, ranged(2, 20, 29), other]

    assert paths(neighbours(files, files, KEY, SMALL, MANY)) == [["0"], ["1"], ["2"], ["3"]]


def test_files_that_lie_across_each_other_are_one_group() -> None:
    """Random keys: who looks for a key has all of them to look at, before and after."""
    files = [ranged(number, number, 1000 + number) for number in range(9)]

    assert paths(neighbours(files, files, KEY, SMALL, MANY)) == [[str(number) for number in range(9)]]


def test_ranges_that_overlap_by_little_are_not_joined() -> None:
    """A file in the place of two of them would meet three others, where each met two."""
    files = [ranged(number, number * 10, number * 10 + 12) for number in range(6)]

    assert paths(neighbours(files, files, KEY, SMALL, MANY)) == [[str(number)] for number in range(6)]


def test_one_that_meets_few_does_not_part_those_that_meet_many() -> None:
    wide = [ranged(number, number, 1000 + number) for number in range(8)]
    files = [*wide[:3], ranged(8, 3, 4), *wide[3:]]

    assert paths(neighbours(files, files, KEY, SMALL, MANY)) == [[str(number) for number in range(8)], ["8"]]


def test_wide_files_that_nobody_rewrites_count_too() -> None:
    """Two halves of the keys, each of many files: none is joined across them."""
    halves = [[ranged(number + 10 * half, 1000 * half + number, 1000 * half + 900 + number) for number in range(6)] for half in (0, 1)]
    files = [*halves[0][:3], *halves[1][:3]]

    assert paths(neighbours(files, [*halves[0], *halves[1]], KEY, SMALL, MANY)) == [["0", "1", "2"], ["10", "11", "12"]]


@pytest.mark.parametrize(("highs", "ascending"), [([9, 19, 29], True), ([9, 20, 29], False), ([9, 99, 29], False)])
def test_whether_a_group_is_in_the_order_of_its_keys(highs: list[int], ascending: bool) -> None:
    assert is_ascending(tuple(ranged(at, at * 10, high) for at, high in enumerate(highs)), KEY) is ascending


def test_a_bound_that_was_cut_says_too_little() -> None:
    """(string, bigint) with an upper bound of the first column only: keys beyond the next file's lower bound may be in it."""
    first = DataFile("t/0.parquet", 10, 1, low=("a", 1), high=("b",))
    second = DataFile("t/1.parquet", 10, 1, low=("b", 5), high=("c", 1))
    third = DataFile("t/2.parquet", 10, 1, low=("d", 5), high=None)
    fourth = DataFile("t/3.parquet", 10, 1, low=("c", 2), high=("c", 9))
    files = [first, second, fourth]

    assert paths(neighbours(files, files, ("string", "bigint"), SMALL, MANY)) == [["0"], ["1", "3"]]
    assert paths(neighbours([*files, third], [*files, third], ("string", "bigint"), SMALL, MANY)) == [["0"], ["1"], ["2"], ["3"]]


def test_a_file_that_lies_across_the_gap_parts_them() -> None:
    """It would share its keys with the joined file, which it does not with either of the two."""
    files = [ranged(0, 0, 100), ranged(1, 5, 10), ranged(2, 101, 110), ranged(3, 120, 130)]

    assert paths(neighbours(files[1:], files, KEY, SMALL, MANY)) == [["1"], ["2", "3"]]


def test_groups_are_cut_evenly() -> None:
    files = row_of(10)

    groups = neighbours(files, files, KEY, SMALL, 49)

    assert [len(group) for group in groups] == [4, 3, 3] or [len(group) for group in groups] == [3, 4, 3]
    assert [file for group in groups for file in group] == files


def test_very_small_files_are_cut_by_their_number() -> None:
    files = row_of(MOST_FILES + 2, size=1)

    assert [len(group) for group in neighbours(files, files, KEY, SMALL, MANY)] == [MOST_FILES // 2 + 1] * 2


@pytest.mark.parametrize(("small", "key"), [(0, KEY), (SMALL, ())])
def test_nothing_is_joined_without_a_bound_or_a_key(small: int, key: tuple[str, ...]) -> None:
    files = row_of(3)

    assert paths(neighbours(files, files, key, small, MANY)) == [["0"], ["1"], ["2"]]


def limits(most_bytes: int = MANY, target: int = 80) -> Limits:
    return Limits(small_file_bytes=SMALL, target_file_bytes=target, tidy_bytes=most_bytes)


def tidied(table: list[DataFile], most_bytes: int = MANY, taken: list[DataFile] | None = None, partitions: str = "a") -> list[str]:
    found = to_tidy(table, {(name,) for name in partitions}, {file.path for file in taken or ()}, KEY, limits(most_bytes))
    return [file.path.split("/")[1].split(".")[0] for each in found for file in each.group]


def test_many_small_files_are_tidied_a_part_at_a_time_from_the_lowest_keys_on() -> None:
    files = row_of(3 * MANY_FILES)

    assert tidied(files[::-1]) == [str(number) for number in range(len(files))]
    assert [len(each.group) for each in to_tidy(files, {("a",)}, set(), KEY, limits())] == [MANY_FILES] * 3
    assert tidied(files, most_bytes=40) == ["0", "1", "2", "3"]
    assert tidied(files, most_bytes=160) == [str(number) for number in range(16)]
    assert tidied(files, most_bytes=0) == tidied(files, most_bytes=1) == []
    assert to_tidy(files, {("a",)}, set(), (), limits()) == []
    rows = sum(file.rows for file in files[: 2 * MANY_FILES])
    assert len(to_tidy(files, {("a",)}, set(), KEY, limits(), rows)) == 2
    assert to_tidy(files, {("a",)}, set(), KEY, limits(), 1) == []


def test_no_more_very_small_files_are_tidied_at_a_time_than_a_task_opens() -> None:
    """Pieces are cut by bytes: large files and very small ones make one of very many."""
    files = [*row_of(100, size=90), *(ranged(number, number * 10, number * 10 + 9, 1) for number in range(100, 3000))]

    groups = to_tidy(files, {("a",)}, set(), KEY, limits(10_000, target=250))

    assert 0 < sum(len(each.group) for each in groups) <= MOST_FILES
    assert max(map(len, neighbours(files, files, KEY, SMALL, 5000))) <= MOST_FILES


def test_a_wide_file_does_not_part_those_that_it_covers() -> None:
    """The one that takes up inserts, after one of a low key: it shares its keys with all of them anyway."""
    files = row_of(MANY_FILES)
    wide = ranged(100, 3, 1000)

    assert tidied([*files, wide], taken=[wide]) == [str(number) for number in range(MANY_FILES)]
    assert paths(neighbours(files, [*files, wide], KEY, SMALL, MANY)) == [[str(number) for number in range(MANY_FILES)]]


@pytest.mark.parametrize(("low", "high", "joined"), [(3, 12, False), (12, 15, False), (15, 25, False), (3, 20, True), (9, 40, True)])
def test_a_file_that_begins_or_ends_in_the_gap_parts_them(low: int, high: int, joined: bool) -> None:
    files = [ranged(0, 0, 9), ranged(1, 20, 29)]

    assert paths(neighbours(files, [*files, ranged(2, low, high)], KEY, SMALL, MANY)) == ([["0", "1"]] if joined else [["0"], ["1"]])


def test_a_few_small_files_stay_as_they_are() -> None:
    """As do those that the batch has in hand, and those of partitions that it does not write to."""
    files = row_of(MANY_FILES)

    assert len(tidied(files)) == MANY_FILES
    assert tidied(files[1:]) == []
    assert tidied(files, taken=files[:1]) == []
    assert tidied(files, partitions="b") == []
    assert tidied([*files[1:], ranged(99, 990, 999, SMALL)]) == []


def test_a_large_file_between_small_ones_parts_what_is_tidied() -> None:
    files = row_of(2 * MANY_FILES)
    files[5] = ranged(5, 50, 59, SMALL)

    assert tidied(files) == [str(number) for number in (*range(6, len(files)), *range(5))]


def test_files_of_random_keys_are_tidied_too() -> None:
    """Where key filters told that no changed key lies in them."""
    assert len(tidied([ranged(number, number, 1000 + number) for number in range(2 * MANY_FILES)])) == 2 * MANY_FILES


def test_tidying_comes_to_an_end() -> None:
    """Whatever a joined file is compressed to, and however often a batch comes."""
    files = row_of(500, size=7)
    for turns in range(500):
        groups = to_tidy(files, {("a",)}, set(), KEY, limits(5 * SMALL // 2, target=1000))
        if not groups:
            break
        group = groups[0].group
        size = sum(file.size_bytes for file in group) // 3
        joined = replace(group[0], path=f"a/{1000 + turns}.parquet", size_bytes=size, high=group[-1].high)
        files = [file for file in files if file not in group] + [joined]
    assert not groups
    assert len([file for file in files if file.size_bytes < SMALL]) < MANY_FILES


@pytest.mark.parametrize(
    ("written", "taken", "beyond", "enough"), [(109, 5, 0, False), (111, 5, 0, True), (111, 6, 0, False), (111, 6, 20, True)]
)
def test_a_tidied_file_ends_where_it_is_not_small_again(written: int, taken: int, beyond: int, enough: bool) -> None:
    """If of its ten files as much is left as it takes."""
    assert (ENOUGH, SMALL) == (1.1, 100)
    assert Tidied(tuple(row_of(10)), beyond).is_enough(limits(100, target=100), written, taken) == enough


@pytest.mark.parametrize("ratio", [0.35, 0.5, 0.9, 1.3])
@pytest.mark.parametrize("count", [80, 100, 123])
def test_what_is_joined_a_part_at_a_time_leaves_one_small_file_at_most(ratio: float, count: int) -> None:
    """ratio: of what is written to what was read."""
    files, bounds = row_of(count, size=20), limits(5 * SMALL, target=1000)
    while found := to_tidy(files, {("a",)}, set(), KEY, bounds):
        (tidied,) = found
        sizes = list(itertools.accumulate(ratio * file.size_bytes for file in tidied.group))
        taken = next((at for at, size in enumerate(sizes, 1) if tidied.is_enough(bounds, size, at)), len(sizes))
        joined = replace(tidied.group[0], path=f"a/{1000 + len(files)}.parquet", size_bytes=int(sizes[taken - 1]) + 1)
        files = [file for file in files if file not in tidied.group[:taken]] + [replace(joined, high=tidied.group[taken - 1].high)]

    small = [file for file in files if file.size_bytes < SMALL]
    assert len(small) <= 1 or all(file.size_bytes == 20 for file in small)
    assert len(small) < MANY_FILES


spans = st.tuples(st.integers(0, 60), st.integers(0, 8), st.integers(1, 150), st.sampled_from("ab"), st.booleans())


@given(spans=st.lists(spans, max_size=25), most_bytes=st.integers(0, 300))
def test_whatever_the_table(spans: list[tuple[int, int, int, str, bool]], most_bytes: int) -> None:
    """Every file is in one group; in a group are small files of a partition. Either keys ascend, and no other file's lie between them, or
    the range of them all meets hardly more files than that of each."""
    table = [ranged(number, low, low + width, size, partition) for number, (low, width, size, partition, _) in enumerate(spans)]
    chosen = [file for file, span in zip(table, spans, strict=True) if span[4]]

    groups = neighbours(chosen, table, KEY, SMALL, most_bytes)

    assert sorted(file.path for group in groups for file in group) == sorted(file.path for file in chosen)
    for group in groups:
        if len(group) == 1:
            continue
        assert {file.partition for file in group} == {group[0].partition}
        assert all(file.size_bytes < SMALL for file in group)
        of_partition = [file for file in table if file.partition == group[0].partition]
        if is_ascending(group, KEY):
            for (_, high), (low, _) in itertools.pairwise(map(span_of, group)):
                others = [bound for file in of_partition if file not in group for bound in span_of(file)]
                assert not any(high < bound < low for bound in others)
        else:
            lows, highs = zip(*map(span_of, group), strict=True)
            assert met(of_partition, min(lows), max(highs)) <= MORE_MET * min(met(of_partition, *span_of(file)) for file in group)


def span_of(file: DataFile) -> tuple[int, int]:
    assert file.low is not None
    assert file.high is not None
    return file.low[0], file.high[0]


def met(table: list[DataFile], low: int, high: int) -> int:
    """How many files have a range that meets this one."""
    return sum(span_of(file)[0] <= high and low <= span_of(file)[1] for file in table)

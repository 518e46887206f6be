"""Pieces that are fetched before they are asked for."""

from __future__ import annotations

import io
import random
import threading
from itertools import pairwise
from typing import Any

import pytest

from glue_jobs.aws import fetched_ahead
from glue_jobs.aws.fetched_ahead import FetchedAhead
from glue_jobs.aws.ranged import RangedFile
from glue_jobs.core.errors import TableBlocked
from tests.aws.faults import Injected, s3_error

DATA = bytes(random.Random(1).randbytes(100_000))
PIECES = [(start, start + 10_000) for start in range(0, 80_000, 10_000)]


class Object:
    """Counts what is fetched of it; `open` lets it come."""

    def __init__(self) -> None:
        self.fetched: list[tuple[int, int]] = []
        self.open = threading.Event()
        self.open.set()
        self.begun = threading.Semaphore(0)

    def get(self, start: int, stop: int) -> bytes:
        self.fetched.append((start, stop))
        self.begun.release()
        assert self.open.wait(60)
        return DATA[start:stop]

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self.begun.acquire(timeout=60)


@pytest.fixture
def source() -> Object:
    return Object()


@pytest.fixture
def two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched_ahead, "AHEAD_BYTES", 20_000)


def test_the_next_ones_are_on_their_way_while_one_is_read(source: Object, two_at_a_time: None) -> None:
    """As many as their bytes allow; each is fetched once."""
    ahead = FetchedAhead(source.get, PIECES)
    source.wait_for(2)
    assert sorted(source.fetched) == PIECES[:2]

    assert [ahead.take(*piece) for piece in PIECES] == [DATA[start:stop] for start, stop in PIECES]
    ahead.close()

    assert sorted(source.fetched) == PIECES


def test_a_large_piece_comes_alone(source: Object, two_at_a_time: None) -> None:
    ahead = FetchedAhead(source.get, [(0, 50_000), (50_000, 60_000)])
    source.wait_for(1)
    ahead.close()

    assert source.fetched == [(0, 50_000)]


def test_many_small_pieces_do_not_all_come_at_once(source: Object) -> None:
    """Each is a connection."""
    source.open.clear()
    ahead = FetchedAhead(source.get, PIECES)
    source.wait_for(4)
    source.open.set()
    ahead.close()

    assert sorted(source.fetched) == PIECES[:4]


def test_a_reader_may_cut_otherwise(source: Object, two_at_a_time: None) -> None:
    """And reads nothing twice: what is left of a piece is there for the next read."""
    others = [(start, start + 5_000) for start in (80_000, 85_000, 90_000, 95_000)]
    ahead = FetchedAhead(source.get, [PIECES[0], others[0], PIECES[1], PIECES[2], others[1], *PIECES[3:], *others[2:]])

    cuts = [0, 1, 15_000, 15_010, 40_000, 75_000, 80_000]
    assert [ahead.take(start, stop) for start, stop in pairwise(cuts)] == [DATA[start:stop] for start, stop in pairwise(cuts)]
    assert [ahead.take(*each) for each in others] == [DATA[slice(*each)] for each in others]
    ahead.close()

    assert sorted(source.fetched) == [*PIECES, *others]


def test_what_no_piece_has_is_fetched_besides(source: Object, two_at_a_time: None) -> None:
    """The small end of a column is in none."""
    ahead = FetchedAhead(source.get, PIECES[:2])

    assert ahead.take(15_000, 23_000) == DATA[15_000:23_000]
    ahead.close()

    assert sorted(source.fetched) == [*PIECES[:2], (20_000, 23_000)]


def test_what_was_taken_out_of_turn_does_not_come_again(source: Object, two_at_a_time: None) -> None:
    ahead = FetchedAhead(source.get, PIECES)

    assert ahead.take(*PIECES[5]) == DATA[50_000:60_000]
    assert [ahead.take(*piece) for piece in PIECES] == [None if number == 5 else DATA[slice(*PIECES[number])] for number in range(8)]
    ahead.close()

    assert sorted(source.fetched) == PIECES


def test_pieces_that_nobody_reads_do_not_keep_others_back(source: Object, two_at_a_time: None) -> None:
    ahead = FetchedAhead(source.get, PIECES)

    assert [ahead.take(*piece) for piece in PIECES[2:]] == [DATA[slice(*piece)] for piece in PIECES[2:]]
    ahead.close()


def test_a_read_of_something_else_changes_nothing(source: Object, two_at_a_time: None) -> None:
    ahead = FetchedAhead(source.get, PIECES)

    assert ahead.take(90_000, 95_000) is None
    assert [ahead.take(*piece) for piece in PIECES] == [DATA[start:stop] for start, stop in PIECES]
    ahead.close()


def test_an_error_is_raised_where_the_piece_is_asked_for(source: Object, two_at_a_time: None) -> None:
    def get(start: int, stop: int) -> bytes:
        if start:
            raise OSError(f"no bytes at {start}")
        return source.get(start, stop)

    ahead = FetchedAhead(get, PIECES)

    assert ahead.take(*PIECES[0]) == DATA[:10_000]
    with pytest.raises(OSError, match="no bytes at 10000"):
        ahead.take(*PIECES[1])
    ahead.close()


def test_nothing_goes_on_behind_its_end(source: Object, two_at_a_time: None) -> None:
    """What is on its way is waited for, the rest does not begin."""
    source.open.clear()
    ahead = FetchedAhead(source.get, PIECES)
    source.wait_for(2)
    closing = threading.Thread(target=ahead.close)
    closing.start()
    source.open.set()
    closing.join(60)

    assert not closing.is_alive()
    assert sorted(source.fetched) == PIECES[:2]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("fetch")]


@pytest.fixture
def file(s3: Any, bucket: str) -> RangedFile:
    s3.put_object(Bucket=bucket, Key="k", Body=DATA)
    etag = s3.head_object(Bucket=bucket, Key="k")["ETag"].strip('"')
    return RangedFile(s3, bucket, "k", len(DATA), etag, read_ahead_bytes=1000)


def test_a_file_reads_the_same_whatever_was_expected(file: RangedFile) -> None:
    """Also inside another expectation, and behind it."""
    chance, local = random.Random(2), io.BytesIO(DATA)

    def read_some() -> None:
        for _ in range(30):
            start = chance.choice([chance.randrange(100_000), chance.randrange(8) * 10_000])
            size = chance.choice([8, 10_000, 10_000, 25_000])
            assert (file.seek(start), file.read(size)) == (local.seek(start), local.read(size))

    with file.fetching_ahead(PIECES):
        read_some()
        with file.fetching_ahead(PIECES[4:]):
            read_some()
        read_some()
    read_some()


def test_a_piece_is_one_request(s3: Any, file: RangedFile) -> None:
    sent = Injected(s3, "GetObject")

    with file.fetching_ahead(PIECES[:3]):
        for start, stop in PIECES[:3]:
            file.seek(start)
            file.read(stop - start)

    assert sent.sent == 3


def test_a_file_that_became_another_one_blocks_the_table(s3: Any, bucket: str, file: RangedFile) -> None:
    """Each piece is asked for by the object's ETag."""
    s3.put_object(Bucket=bucket, Key="k", Body=DATA[::-1])

    with file.fetching_ahead(PIECES), pytest.raises(TableBlocked) as caught:
        file.read(10_000)

    assert caught.value.code == "raw-file-changed"


def test_a_refused_piece_is_an_error_for_its_reader_alone(s3: Any, file: RangedFile) -> None:
    Injected(s3, "GetObject", s3_error(403, "AccessDenied"))

    with file.fetching_ahead(PIECES[:1]):
        with pytest.raises(Exception, match="AccessDenied"):
            file.read(10_000)
        assert file.read(10_000) == DATA[:10_000]

"""A correction writes small files that follow on each other as one, as a batch does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from glue_jobs.core.record import DataFile
from glue_jobs.spark import apply_rows, joined_files
from tests.spark.small_files import fill, in_order
from tests.spark.tables import WorkTable
from tests.work_tables import MakeTable

FILES, ROWS = 8, 50


def name_of(number: int) -> str:
    """Not unique: ten rows of a file share one."""
    return f"n{number // 10}"


@pytest.fixture
def many(request: pytest.FixtureRequest) -> WorkTable:
    """An unpartitioned table of eight small files."""
    make: MakeTable = request.getfixturevalue(request.param)
    return fill(make(), FILES, "n{1}")


def keys_of(files: list[int]) -> list[int]:
    """A row of each of these files; the rows of its name lie in no other file."""
    return [at * ROWS + 10 for at in files]


def deletes(folder: Path, numbers: list[int]) -> str:
    path = folder / "names.csv"
    path.write_text("\n".join(["name", *map(name_of, numbers)]) + "\n")
    return str(path)


@pytest.mark.parametrize(("many", "settings"), [("quick_table", {}), ("spark_table", {"driver_bytes": "0"})], indirect=["many"])
def test_rewritten_neighbours_become_one_file(many: WorkTable, settings: dict[str, str], tmp_path: Path) -> None:
    """The file that holds none of the keys stays and parts them; one that has rows to take up is in its place among the others."""
    before, rows = in_order(many), {row[0]: row for row in many.rows()}
    new = tmp_path / "updates.csv"
    new.write_text("id,name,qty\n" + "".join(f"{number},{name_of(number)},7\n" for number in (260, 261)))
    gone = keys_of([0, 1, 2, 4, 6])

    assert many.run("Apply", key="name", deletes=deletes(tmp_path, gone), updates=str(new), **settings) == 0, many.last_run()

    for number in [number for number in rows if name_of(number) in {name_of(key) for key in gone} | {name_of(260)}]:
        del rows[number]
    rows.update({number: (number, name_of(number), 7) for number in (260, 261)})
    assert sorted(many.rows()) == sorted(rows.values())
    after = in_order(many)
    assert [file.rows for file in after] == [3 * 40, 50, 40 + 50 - 8 + 40, 50]
    assert [after[1], after[3]] == [before[3], before[7]]
    assert (after[0].low, after[0].high) == (before[0].low, before[2].high)
    many.check_files()
    many.check_folder()


@pytest.mark.parametrize("many", ["quick_table"], indirect=True)
def test_a_file_that_is_gone_leaves_no_upload_behind(many: WorkTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One task has a lone file and two groups in hand. The first group's end is sent while the second one fails, and is given up."""
    before = in_order(many)
    found = apply_rows.rewrite

    def rewrite(*arguments: Any) -> list[DataFile]:
        many.clients.s3.delete_object(Bucket=many.out_path.bucket, Key=many.out_path.key + before[6].path)
        return found(*arguments)

    monkeypatch.setattr(apply_rows, "rewrite", rewrite)
    aborted: list[str] = []
    abort = joined_files.abort_all
    monkeypatch.setattr(joined_files, "abort_all", lambda writers: (aborted.append("joined"), abort(writers)))

    assert many.run("Apply", key="name", deletes=deletes(tmp_path, keys_of([0, 2, 3, 5, 6]))) != 0
    assert many.last_run()["error"]["code"] == "data-file-gone"
    assert aborted == ["joined"]
    assert many.open_uploads() == []
    assert many.visible() == {file.path for file in before} - {before[6].path}

"""The process of one contender: `python -m benchmarks.measuring.worker`, started by `Worker` and by nobody else.

It reads requests, one line of JSON each, from standard input and answers each with one line. What the contender and its JVM print goes
to standard error: their standard output is taken away before anything else is imported.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.contenders.contender import Contender


def main() -> int:
    """Answers until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    contender = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if contender is None:
                contender = open_contender(request["contender"])
            answer: dict[str, Any] = {"value": act(contender, request)}
        except Exception as error:  # noqa: BLE001 - one contender's failure is a line of the results, not the end of the run
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(json.dumps(answer), file=answers, flush=True)
    return 0


def open_contender(wanted: dict[str, Any]) -> Contender:
    """The contender of the first request, on its workload."""
    os.environ.update(wanted["environment"])
    from benchmarks.contenders.contender import World
    from benchmarks.contenders.registry import contender
    from benchmarks.data.base import Base
    from benchmarks.data.prepared import prepare
    from benchmarks.data.workloads import WORKLOADS

    prepared = prepare(WORKLOADS[wanted["workload"]], Base(**wanted["base"]))
    return contender(wanted["name"])(World(wanted["environment"], prepared))


def act(contender: Contender, request: dict[str, Any]) -> Any:
    """What a request asks for: something of the contender, or of its readers."""
    action, table = request["do"], request["table"]
    if action in ("before", "apply"):
        return getattr(contender, action)(table, request["batch"])
    if action in ("make", "undo", "redo", "before_load", "load", "correct", "files"):
        return getattr(contender, action)(table)
    if action in ("scan", "point", "digest", "digest_by_duckdb", "check_order"):
        from benchmarks.measuring import reading  # not in the time of what is measured before

        return getattr(reading, action)(contender, table)
    raise ValueError(f"no such action: {action}")


if __name__ == "__main__":
    sys.exit(main())

"""Runs a job as its entry script does, in a process that kills itself (SIGKILL) at a chosen request.

python -m tests.protocol.killed_job <job> <moment> <the job's arguments …>
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from glue_jobs import load_incremental, load_initial, rollback
from tests.protocol.wire import Request, Wire

JOBS = {"LoadInitial": load_initial.main, "LoadIncremental": load_incremental.main, "Rollback": rollback.main}
# moment: (the request, whether it takes effect before the process dies)
MOMENTS: dict[str, tuple[Callable[[Request], bool], bool]] = {
    "during the work": (lambda request: request.is_data_part() or request.is_copy(), True),
    "between record and commit": (Request.is_commit, False),
    "between commit and converge": (Request.is_commit, True),
    "between completing and hiding": (Request.is_completion, True),
}


def main(job: str, moment: str, argv: list[str]) -> int:
    matches, takes_effect = MOMENTS[moment]

    def rule(request: Request, forward: Callable[[], Any]) -> Any:
        if not matches(request):
            return forward()
        if takes_effect:
            forward()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("still alive")

    with Wire(rule=rule).connected():
        return JOBS[job](argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))

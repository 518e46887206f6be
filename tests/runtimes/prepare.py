"""Makes the environments of other Pythons that some tests run jobs in, before any test: they are downloads of minutes, for which a core
that has nothing else to do will do. What fails here is tried again, and said, by the test that needs it.

Needs no package: python -m tests.runtimes.prepare
"""

from __future__ import annotations

from tests.machine import find_python
from tests.runtimes.python39 import NEWEST_BOTO3, PREINSTALLED_BOTO3, environment_with
from tests.runtimes.spark_runtime import GLUE_50, GLUE_51, GLUE_60


def prepare() -> None:
    if find_python("3.9"):
        for boto3 in (NEWEST_BOTO3, PREINSTALLED_BOTO3):
            environment_with(boto3)
    for runtime in (GLUE_50, GLUE_60, GLUE_51):  # the last has the pyspark that is installed for the tests, too: it is at hand by then
        if find_python(runtime.python):
            runtime.folder()


if __name__ == "__main__":
    prepare()

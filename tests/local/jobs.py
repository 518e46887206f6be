"""Glue jobs made of a few lines of Python, and a wait with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

from infra.local.job_process import PYTHON_SHELL, SPARK
from infra.local.job_table import Job

DEADLINE_SECONDS = 60.0

SCRIPTS = {
    "echo.py": """
        import json, os, sys
        print("RESULT " + json.dumps({"argv": sys.argv, "cwd": os.getcwd(), "path": sys.path, "env": dict(os.environ)}))
        """,
    "fail.py": """
        import sys
        print("before")
        def inner():
            raise ValueError("no such table: shop.orders")
        try:
            {}["first"]
        except KeyError:
            inner()
        """,
    "exits.py": """
        import sys
        from awsglue.utils import getResolvedOptions
        sys.exit(eval(getResolvedOptions(sys.argv, ["code"])["code"]))
        """,
    "waits.py": """
        import subprocess, sys, threading
        child = subprocess.Popen([sys.executable, "-c", "import sys, threading; threading.Event().wait()"])
        print("child", child.pid, flush=True)
        threading.Event().wait()
        """,
    "s3.py": """
        import os, boto3
        boto3.client("s3").put_object(Bucket=os.environ.get("BUCKET", "dmslake-lake"), Key="from-job", Body=b"seen")
        """,
    "sql.py": """
        import sys
        from awsglue.context import GlueContext
        from awsglue.job import Job
        from awsglue.utils import getResolvedOptions
        from pyspark import TaskContext
        from pyspark.context import SparkContext

        args = getResolvedOptions(sys.argv, ["JOB_NAME", "rows"])
        sc = SparkContext.getOrCreate()
        glue = GlueContext(sc)
        job = Job(glue)
        job.init(args["JOB_NAME"], args)

        def second_attempt_only(row):
            if TaskContext.get().attemptNumber() == 0:
                raise RuntimeError("first attempt")
            return row

        total = sc.parallelize(range(int(args["rows"])), 2).map(second_attempt_only).sum()
        zone = glue.spark_session.conf.get("spark.sql.session.timeZone")
        print(f"RESULT total={total} master={sc.master} zone={zone} run={args['JOB_RUN_ID']}")
        job.commit()
        """,
}

JOBS = (
    Job("Controller", PYTHON_SHELL, "echo.py", max_concurrent_runs=1),
    Job("Echo", SPARK, "echo.py", max_concurrent_runs=2, arguments={"--batch": "7", "--mode": "plain"}),
    Job("Fail", PYTHON_SHELL, "fail.py", max_concurrent_runs=1),
    Job("Exits", PYTHON_SHELL, "exits.py", max_concurrent_runs=4),
    Job("Waits", PYTHON_SHELL, "waits.py", max_concurrent_runs=2),
    Job("S3", PYTHON_SHELL, "s3.py", max_concurrent_runs=1),
    Job("Sql", SPARK, "sql.py", max_concurrent_runs=1),
    Job("Missing", PYTHON_SHELL, "nowhere.py", max_concurrent_runs=1),
    Job("FromBucket", PYTHON_SHELL, "s3://dmslake-raw/code/uploaded.py", max_concurrent_runs=1),
)


def until(condition: Callable[[], bool], what: str) -> None:
    """Waits until `condition` holds; fails after a minute."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS:g} s: {what}"
        time.sleep(0.05)

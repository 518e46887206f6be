"""The artifact bucket of the embedded AWS: the template and the scripts of the jobs, as `dmslake deploy` would upload them.

They are there to be seen. What runs is the file of the code folder, so that a change of it needs no new start; wheel and zip
aren't there, because `--extra-py-files` is ignored here. Scripts elsewhere, of a stack that `dmslake deploy` made, run from S3.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from glue_jobs import __version__
from infra import aws
from infra.local.session import REGION

BUCKET = "dmslake-artifacts"
PREFIX = "code/"
TEMPLATE_URL = f"https://{BUCKET}.s3.amazonaws.com/{PREFIX}{aws.LAKE.name}"
PARAMETERS = {"ArtifactBucket": BUCKET, "ArtifactPrefix": PREFIX, "ControllerWheel": f"dmslake-{__version__}-py3-none-any.whl"}
_SCRIPTS = ("controller/main.py", "glue_jobs/*.py")


def put_artifacts(s3: Any, code_folder: Path) -> None:
    """For the process of the server only: makes the bucket in moto's backend `s3`, with what of it is in the code folder."""
    s3.create_bucket(BUCKET, REGION)
    s3.put_object(BUCKET, PREFIX + aws.LAKE.name, aws.LAKE.read_bytes())
    for script in (found for pattern in _SCRIPTS for found in sorted(code_folder.glob(pattern))):
        if not script.name.startswith("__"):
            s3.put_object(BUCKET, PREFIX + script.relative_to(code_folder).as_posix(), script.read_bytes())


def path_in_code_folder(location: str) -> str | None:
    """`glue_jobs/apply.py` of an `s3://` location in the artifact folder; None for a location elsewhere."""
    folder = f"s3://{BUCKET}/{PREFIX}"
    return location[len(folder) :] if location.startswith(folder) else None

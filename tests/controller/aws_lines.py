"""Lines for the aws command: run as it runs them, or, where no stand-in knows the operation, held against the service's model."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.validate import ParamValidator

# One process for many lines: each of its own would take a second to start.
_AWS = """
import shlex, sys
from awscli.clidriver import create_clidriver
driver = create_clidriver()
for line in sys.stdin:
    if driver.main(shlex.split(line)[1:]):
        sys.exit(line)
"""


def run_lines(*lines: str) -> None:
    """Run them, all in this process's environment."""
    given = "\n".join(lines)
    done = subprocess.run([sys.executable, "-c", _AWS], input=given, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def request_of(line: str) -> dict[str, Any]:
    """The request that a line means, after it was found to fit the service's model."""
    aws, service, operation, *options = shlex.split(line)
    assert aws == "aws"
    model = botocore.session.get_session().get_service_model(service)
    shape = next(model.operation_model(name).input_shape for name in model.operation_names if xform_name(name, "-") == operation)
    members = {"--" + xform_name(name, "-"): (name, member.type_name) for name, member in shape.members.items()}
    request = {}
    for option, value in zip(options[::2], options[1::2], strict=True):
        name, kind = members[option]
        request[name] = json.loads(value) if kind in ("structure", "map") else value
    assert not (report := ParamValidator().validate(request, shape)).has_errors(), report.generate_report()
    return request

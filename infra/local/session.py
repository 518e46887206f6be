"""A boto3 session for the embedded AWS that takes nothing from the person's own AWS settings."""

from __future__ import annotations

import os
from typing import Any

import boto3
import botocore.session
from botocore.config import Config

LOOPBACK = "127.0.0.1"
REGION = "us-east-1"
ACCOUNT = "123456789012"  # moto's, when nobody says otherwise
ACCESS_KEY = "embedded"
SECRET_KEY = "embedded"


# (name in the config file, environment variable, default, conversion): none of the first two, so nothing is looked up.
# An AWS_PROFILE in the shell would otherwise be required to exist.
_NOTHING_FROM_OUTSIDE = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}


def aws_environment() -> dict[str, str]:
    """What stands in the environment of every process that works on an embedded AWS, its endpoint apart."""
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": ",".join(filter(None, [os.environ.get("NO_PROXY", ""), LOOPBACK])),
    }


def embedded_session() -> Any:
    """A boto3 session for clients of the embedded AWS: all after the first cost a fifth of it. Not for several threads at once."""
    return boto3.session.Session(
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name=REGION,
        botocore_session=botocore.session.Session(session_vars=_NOTHING_FROM_OUTSIDE),
    )


def embedded_client(service: str, endpoint_url: str, session: Any = None) -> Any:
    """A boto3 client of `service` at `endpoint_url`; makes up to 32 connections, never through a proxy."""
    session = session or embedded_session()
    config = Config(max_pool_connections=32, proxies={"http": None})
    return session.client(service, endpoint_url=endpoint_url, config=config)

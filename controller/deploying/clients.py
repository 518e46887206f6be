"""The clients that a deployment needs beside those of the jobs."""

from __future__ import annotations

import functools
from typing import Any
from urllib.parse import quote

from botocore.config import Config

from controller.doctor.account import account_facts
from controller.doctor.looks import DoctorClients
from glue_jobs.aws.clients import Clients


class DeployClients(Clients):
    """S3 and CloudFormation. They honour the variables that make_clients names, and AWS_ENDPOINT_URL_CLOUDFORMATION."""

    @functools.cached_property
    def cloudformation(self) -> Any:
        return self._client("cloudformation")

    @property
    def region(self) -> str:
        """Where the stack is, or will be."""
        return str(self.cloudformation.meta.region_name)

    @functools.cached_property
    def account(self) -> str:
        """The number of the account that the stack is in, or will be; '' where nobody answers, as in a VPC without a way to STS."""
        clients, _ = DoctorClients(self.environment), self.region  # which makes the session
        clients.share(self)
        return account_facts(clients).number

    def public_url(self, bucket: str, key: str) -> str:
        """The address of an object as CloudFormation wants it: S3's own, in the partition of the region, whatever endpoint we use."""
        options: dict[str, Any] = {"ignore_configured_endpoint_urls": True, "s3": {"addressing_style": "path"}}
        s3: Any = self._new_session().client("s3", region_name=self.region, config=Config(**options))
        return f"{s3.meta.endpoint_url}/{bucket}/{quote(key)}"  # S3 takes a bare plus sign for a space

"""Buckets and their policies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from infra.local.cloudformation.resource import PARTITION, NotHandled, Properties, Resource, backend, only
from infra.local.session import REGION

_RULE = frozenset(
    {
        *("Id", "Status", "Prefix", "NoncurrentVersionExpiration", "ExpiredObjectDeleteMarker", "ExpirationInDays"),
        "AbortIncompleteMultipartUpload",
    }
)
_ENCRYPTION_RULE = frozenset({"BucketKeyEnabled", "ServerSideEncryptionByDefault"})
_PUBLIC_ACCESS = frozenset({"BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"})


class Bucket(Resource):
    """A bucket with its versioning, lifecycle, encryption, ownership and block of public access."""

    TYPE = "AWS::S3::Bucket"
    NAME = "BucketName"
    HANDLED = frozenset(
        {
            *("BucketName", "VersioningConfiguration", "LifecycleConfiguration", "BucketEncryption", "OwnershipControls"),
            "PublicAccessBlockConfiguration",
        }
    )

    def attributes(self) -> dict[str, str]:
        """ARN and address."""
        return {"Arn": f"arn:{PARTITION}:s3:::{self.name}", "DomainName": f"{self.name}.s3.amazonaws.com"}

    def create(self) -> None:
        """Makes the bucket, then sets all that is said of it."""
        backend("s3").create_bucket(self.name, REGION)
        self.update(self.properties)

    def update(self, properties: Properties) -> None:
        """Sets what the properties say and takes away what they don't."""
        s3 = backend("s3")
        if "VersioningConfiguration" in properties:
            status = only(properties["VersioningConfiguration"], frozenset({"Status"}), "VersioningConfiguration")["Status"]
            s3.put_bucket_versioning(self.name, status)
        elif s3.get_bucket_versioning(self.name):
            s3.put_bucket_versioning(self.name, "Suspended")  # it can't be taken back
        rules = properties.get("LifecycleConfiguration", {}).get("Rules", [])
        s3.put_bucket_lifecycle_configuration(self.name, [lifecycle_rule(rule) for rule in rules])
        if not rules:
            s3.delete_bucket_lifecycle(self.name)
        s3.get_bucket(self.name).encryption = _encryption(properties.get("BucketEncryption"))
        s3.get_bucket(self.name).public_access_block = None
        if "PublicAccessBlockConfiguration" in properties:
            block = only(properties["PublicAccessBlockConfiguration"], _PUBLIC_ACCESS, "PublicAccessBlockConfiguration")
            s3.put_public_access_block(self.name, {name: str(value).lower() for name, value in block.items()})
        s3.put_bucket_ownership_controls(self.name, _ownership(properties.get("OwnershipControls")))

    def delete(self) -> None:
        """Deletes an empty bucket."""
        if backend("s3").delete_bucket(self.name) is None:
            raise NotHandled(f"The bucket {self.name} is not empty")


class BucketPolicy(Resource):
    """The policy of a bucket; nobody here acts on it."""

    TYPE = "AWS::S3::BucketPolicy"
    HANDLED = frozenset({"Bucket", "PolicyDocument"})
    REPLACES = frozenset({"Bucket"})

    def create(self) -> None:
        """Puts it on the bucket."""
        self.update(self.properties)

    def update(self, properties: Properties) -> None:
        """Puts it on the bucket."""
        backend("s3").put_bucket_policy(properties["Bucket"], json.dumps(properties["PolicyDocument"]).encode())

    def delete(self) -> None:
        """Takes it from the bucket."""
        backend("s3").delete_bucket_policy(self.properties["Bucket"])


def lifecycle_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """A rule as PutBucketLifecycleConfiguration has it: ID for Id, and a Filter."""
    only(rule, _RULE, "LifecycleConfiguration.Rules")
    made: dict[str, Any] = {"ID": rule["Id"], "Status": rule["Status"], "Filter": {"Prefix": rule.get("Prefix", "")}}
    for name, known in (("NoncurrentVersionExpiration", "NoncurrentDays"), ("AbortIncompleteMultipartUpload", "DaysAfterInitiation")):
        if name in rule:
            made[name] = dict(only(rule[name], frozenset({known}), f"LifecycleConfiguration.Rules.{name}"))
    if "ExpirationInDays" in rule:
        made["Expiration"] = {"Days": rule["ExpirationInDays"]}
    if "ExpiredObjectDeleteMarker" in rule:
        made["Expiration"] = {**made.get("Expiration", {}), "ExpiredObjectDeleteMarker": rule["ExpiredObjectDeleteMarker"]}
    return made


def _encryption(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The one rule as PutBucketEncryption has it."""
    if given is None:
        return None
    (rule,) = given["ServerSideEncryptionConfiguration"]
    only(rule, _ENCRYPTION_RULE, "BucketEncryption.ServerSideEncryptionConfiguration")
    made = {"ApplyServerSideEncryptionByDefault": dict(rule["ServerSideEncryptionByDefault"])}
    return {"Rule": {**made, "BucketKeyEnabled": rule.get("BucketKeyEnabled", False)}}


def _ownership(given: Mapping[str, Any] | None) -> str | None:
    if given is None:
        return None
    (rule,) = given["Rules"]
    return str(only(rule, frozenset({"ObjectOwnership"}), "OwnershipControls.Rules")["ObjectOwnership"])

"""A bucket: whether it is there, can be read, is in the region, and is not public. The same for raw and lake."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.doctor.finding import BLOCKS, FINE, WARNS, Finding, aws_line
from controller.doctor.looks import Seen, look, look_by, not_checked
from glue_jobs.core.paths import S3Uri

PUBLIC_BLOCKS = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
NO_BUCKET = ("NoSuchBucket", "404")


@dataclass(frozen=True)
class Bucket:
    """A bucket and a folder of it, by what AWS answers. role: raw or lake. sample: the folder's first file, one byte of it read."""

    role: str
    uri: S3Uri
    region: Seen = Seen()
    sample: Seen = Seen()
    versioning: Seen = Seen()
    lifecycle: Seen = Seen()
    public_block: Seen = Seen()
    policy: Seen = Seen()
    policy_status: Seen = Seen()
    ownership: Seen = Seen()
    lock: Seen = Seen()

    @property
    def name(self) -> str:
        return self.uri.bucket

    @property
    def where(self) -> str:
        return f"s3://{self.name}"

    @property
    def is_there(self) -> bool:
        """Whether it makes sense to look further."""
        return self.region.answer is not None or (self.region.error is not None and self.region.error.code == "access-denied")


def bucket_facts(s3: Any, role: str, uri: S3Uri) -> Bucket:
    """Everything about the bucket that a check asks for."""
    bucket = Bucket(role, uri, region=look_by("s3:ListBucket", lambda: _region(s3, uri.bucket), NO_BUCKET))
    if not bucket.is_there:
        return bucket
    name = uri.bucket
    return Bucket(
        role,
        uri,
        region=bucket.region,
        sample=look_by("s3:ListBucket and s3:GetObject", lambda: _sample(s3, uri), ("InvalidRange",)),
        versioning=look("s3:GetBucketVersioning", s3.get_bucket_versioning, Bucket=name),
        lifecycle=look(
            "s3:GetLifecycleConfiguration", s3.get_bucket_lifecycle_configuration, ("NoSuchLifecycleConfiguration",), Bucket=name
        ),
        public_block=look(
            "s3:GetBucketPublicAccessBlock", s3.get_public_access_block, ("NoSuchPublicAccessBlockConfiguration",), Bucket=name
        ),
        policy=look("s3:GetBucketPolicy", s3.get_bucket_policy, ("NoSuchBucketPolicy",), Bucket=name),
        ownership=look("s3:GetBucketOwnershipControls", s3.get_bucket_ownership_controls, ("OwnershipControlsNotFoundError",), Bucket=name),
        policy_status=look("s3:GetBucketPolicyStatus", s3.get_bucket_policy_status, ("NoSuchBucketPolicy",), Bucket=name),
        lock=look(
            "s3:GetBucketObjectLockConfiguration", s3.get_object_lock_configuration, ("ObjectLockConfigurationNotFoundError",), Bucket=name
        ),
    )


def _region(s3: Any, bucket: str) -> str:
    """The bucket's region, from a header: also older boto3 shows it."""
    headers = s3.head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPHeaders"]
    return str(headers.get("x-amz-bucket-region") or "")


def _sample(s3: Any, uri: S3Uri) -> str:
    """The key of the folder's first object with bytes, one of which was read; '' if the listing's first page has none.

    An empty object says nothing: mostly it is the mark of a folder, which stands before all that lies in it.
    """
    page = s3.list_objects_v2(Bucket=uri.bucket, Prefix=uri.key).get("Contents", [])
    key = next((str(entry["Key"]) for entry in page if entry["Size"]), "")
    if key:
        s3.get_object(Bucket=uri.bucket, Key=key, Range="bytes=0-0")["Body"].read()
    return key


def bucket_findings(bucket: Bucket, region: str, has_jobs: bool | None = False) -> list[Finding]:
    """What holds for both buckets. region: that of the requests. has_jobs: whether the jobs are there, None where that is unknown."""
    check = f"{bucket.role}-bucket"
    if bucket.region.missing:
        fix = aws_line("s3", "mb", bucket.where)
        return [
            Finding(BLOCKS, check, bucket.where, f"there is no such bucket: correct --{bucket.role}, or make it", "a bucket", "none", fix)
        ]
    if not bucket.is_there:
        return [_unreachable(bucket, check)]
    return [*_reading(bucket, check), *_in_region(bucket, region, has_jobs), *_public(bucket)]


def _unreachable(bucket: Bucket, check: str) -> Finding:
    error = bucket.region.error
    assert error is not None
    return Finding(BLOCKS, check, bucket.where, "the bucket can't be used from here", "an answer", error.message, todo=error.todo)


def _reading(bucket: Bucket, check: str) -> list[Finding]:
    sample = bucket.sample
    if sample.error is None:
        found = f"{sample.answer} can be read" if sample.answer else "it can be listed; nothing is there yet"
        return [Finding(FINE, check, str(bucket.uri), found=found)]
    if sample.error.code != "access-denied":
        return [not_checked(sample, check, str(bucket.uri))]
    what = "objects can't be listed or read from here (jobs on Glue have a role of their own)"
    error = sample.error
    return [Finding(WARNS, check, str(bucket.uri), what, sample.permission, error.message, todo=error.todo)]


def _in_region(bucket: Bucket, region: str, has_jobs: bool | None) -> list[Finding]:
    """Where jobs are there, another region in this shell would only lose sight of them."""
    check, found = f"{bucket.role}-region", str(bucket.region.answer or "")
    if bucket.region.is_unknown:
        return [not_checked(bucket.region, check, bucket.where)]
    if not found or found == region:
        return [Finding(FINE, check, bucket.where, found=found or region)]
    what = "every byte crosses regions, which is slow and billed"
    if has_jobs is None:
        todo = f"if the jobs are in {found}: `export AWS_REGION={found}`; else a bucket where they run"
        return [Finding(WARNS, check, bucket.where, what, region, found, todo=todo)]
    if has_jobs:
        todo = f"the jobs run in {region}: give them a bucket there, or deploy the stack in {found}"
        return [Finding(WARNS, check, bucket.where, what, region, found, todo=todo)]
    return [Finding(WARNS, check, bucket.where, what, region, found, f"export AWS_REGION={found}")]


def _public(bucket: Bucket) -> list[Finding]:
    """Two looks: the bucket's own block of public access, and whether its policy is public as it is."""
    check, findings = f"{bucket.role}-public", []
    block, status = bucket.public_block, bucket.policy_status
    if block.is_unknown:
        findings.append(not_checked(block, check, bucket.where))
    else:
        settings: Mapping[str, Any] = (block.answer or {}).get("PublicAccessBlockConfiguration", {})
        off = [name for name in PUBLIC_BLOCKS if not settings.get(name)]
        if off:
            findings.append(_not_blocked(bucket, check, off))
    if status.answer and status.answer.get("PolicyStatus", {}).get("IsPublic"):
        fix = aws_line("s3api", "get-bucket-policy", bucket=bucket.name)
        findings.append(Finding(WARNS, check, bucket.where, "everybody may use this bucket: look at its policy", "no", "public", fix))
    return findings or [Finding(FINE, check, bucket.where, found="public access is blocked")]


def _not_blocked(bucket: Bucket, check: str, off: list[str]) -> Finding:
    configuration = json.dumps(dict.fromkeys(PUBLIC_BLOCKS, True))
    fix = aws_line("s3api", "put-public-access-block", bucket=bucket.name, public_access_block_configuration=configuration)
    what = "a policy or ACL could open the bucket to everybody (the account's own setting is not looked at)"
    return Finding(
        WARNS,
        check,
        bucket.where,
        what,
        "all four settings on",
        "none" if len(off) == len(PUBLIC_BLOCKS) else f"off: {', '.join(off)}",
        fix,
    )

"""What IAM asks for a request: actions, each with the resources it is about. After the Service Authorization Reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.infra.resolve import PSEUDO
from tests.requests.recorder import Call

ACCOUNT = f"{PSEUDO['AWS::Region']}:{PSEUDO['AWS::AccountId']}"
# Answers that S3 gives, instead of AccessDenied, only to who may list the bucket.
_MISSING = ("NoSuchKey", "404")


@dataclass(frozen=True)
class Need:
    """One action on one resource. context: the condition keys that the request has."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict, hash=False)


def needs_of(call: Call) -> list[Need]:
    """All that must be allowed for the call. ValueError for an operation that stands in no table here."""
    try:
        return list(_SERVICES[call.service](call))
    except KeyError as error:
        raise ValueError(f"{call.service} {call.operation}: no row in tests/requests/actions.py ({error})") from error


def _s3(call: Call) -> Iterator[Need]:
    params = call.params
    bucket = f"arn:aws:s3:::{params['Bucket']}"
    if call.operation in _BUCKET_ACTIONS:
        prefix = {"s3:prefix": params["Prefix"]} if "Prefix" in params else {}
        yield Need(_BUCKET_ACTIONS[call.operation], bucket, prefix)
        return
    if call.operation == "DeleteObjects":
        for entry in params["Delete"]["Objects"]:
            yield Need("s3:DeleteObjectVersion" if "VersionId" in entry else "s3:DeleteObject", f"{bucket}/{entry['Key']}")
        return
    action = _OBJECT_ACTIONS[call.operation]
    yield Need(f"{action}Version" if "VersionId" in params else action, f"{bucket}/{params['Key']}")
    if "CopySource" in params:
        source = params["CopySource"]
        read = "s3:GetObjectVersion" if "VersionId" in source else "s3:GetObject"
        yield Need(read, f"arn:aws:s3:::{source['Bucket']}/{source['Key']}")
    if call.error in _MISSING:
        yield Need("s3:ListBucket", bucket)


def _dynamodb(call: Call) -> Iterator[Need]:
    tables = list(call.params["RequestItems"]) if "RequestItems" in call.params else [call.params["TableName"]]
    for table in tables:
        yield Need(f"dynamodb:{call.operation}", f"arn:aws:dynamodb:{ACCOUNT}:table/{table}")


def _glue(call: Call) -> Iterator[Need]:
    """Of the catalog, an action is asked for on the table, and on all that it is in."""
    params, start = call.params, f"arn:aws:glue:{ACCOUNT}:"
    if "JobName" in params:
        yield Need(f"glue:{call.operation}", f"{start}job/{params['JobName']}")
        return
    database = params["Name"] if call.operation == "GetDatabase" else params["DatabaseName"]
    found = [f"{start}catalog", f"{start}database/{database}"]
    if call.operation != "GetDatabase":
        table = params.get("TableName") or params.get("Name") or params["TableInput"]["Name"]
        found.append(f"{start}table/{database}/{table}")
    for resource in found:
        yield Need(f"glue:{call.operation}", resource)


def key_needs(need: Need, key: str) -> list[Need]:
    """What is asked for of the KMS key that bucket and table have."""
    service = {"s3:GetObject": "s3", "s3:GetObjectVersion": "s3", "s3:PutObject": "s3"}.get(need.action)
    if service is None and need.action.startswith("dynamodb:"):
        return [Need("kms:Decrypt", key, {"kms:ViaService": f"dynamodb.{PSEUDO['AWS::Region']}.amazonaws.com"})]
    if service is None:
        return []
    actions = ["kms:Decrypt"] if need.action != "s3:PutObject" else ["kms:GenerateDataKey", "kms:Decrypt"]  # parts are read again
    return [Need(action, key, {"kms:ViaService": f"s3.{PSEUDO['AWS::Region']}.amazonaws.com"}) for action in actions]


_SERVICES: Mapping[str, Callable[[Call], Iterator[Need]]] = {"s3": _s3, "dynamodb": _dynamodb, "glue": _glue}
_BUCKET_ACTIONS = {
    "ListObjectsV2": "s3:ListBucket",
    "ListObjectVersions": "s3:ListBucketVersions",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "GetBucketVersioning": "s3:GetBucketVersioning",
    "GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
}
_OBJECT_ACTIONS = {
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "UploadPartCopy": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "ListParts": "s3:ListMultipartUploadParts",
    "DeleteObject": "s3:DeleteObject",
}

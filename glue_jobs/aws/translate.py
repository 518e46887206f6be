"""From what boto3 raises to errors that say what a person can do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from botocore import exceptions as boto
from botocore.exceptions import BotoCoreError, ClientError

from glue_jobs.core.errors import ConfigurationError, DmslakeError, RetryLater

ACCESS_DENIED = frozenset(
    "AccessDenied AccessDeniedException UnauthorizedOperation AuthorizationError AllAccessDisabled"
    " KMS.AccessDeniedException Forbidden 403".split()
)
BAD_CREDENTIALS = frozenset(
    "InvalidAccessKeyId SignatureDoesNotMatch UnrecognizedClientException InvalidClientTokenId ExpiredToken"
    " ExpiredTokenException InvalidToken InvalidSignatureException MissingAuthenticationTokenException"
    " MissingAuthenticationToken IncompleteSignature IncompleteSignatureException NotSignedUp".split()
)
ARCHIVED = "InvalidObjectState"  # of an object that a lifecycle rule moved to where nothing can read it
CLOCK_SKEWED = frozenset("RequestTimeTooSkewed RequestExpired".split())
# The request was not carried out, or not known to be: the same one may succeed later.
RETRYABLE = frozenset(
    "SlowDown ServiceUnavailable InternalError InternalServerError InternalFailure RequestTimeout RequestTimeoutException"
    " Throttling ThrottlingException ThrottledException RequestThrottled RequestThrottledException TooManyRequestsException"
    " RequestLimitExceeded BandwidthLimitExceeded ProvisionedThroughputExceededException LimitExceededException"
    " TransactionInProgressException OperationAborted ConcurrentModificationException OperationTimeoutException BadDigest"
    " InternalServiceException 500 502 503 504 429".split()
)
_MISSING = {
    "NoSuchBucket": ("no-bucket", "create the bucket, or correct the setting that names it (--raw, --lake)"),
    "ResourceNotFoundException": ("no-resource", "correct the setting that names it (--state-table, --database), or create it"),
    "EntityNotFoundException": ("no-resource", "correct the setting --database, or create the Glue database, table or job"),
}


def error_code(error: BaseException) -> str:
    """AWS's code in a ClientError, '' for any other error."""
    if not isinstance(error, ClientError):
        return ""
    return str(error.response.get("Error", {}).get("Code", ""))


def aws_error(error: BaseException) -> DmslakeError:
    """The DmslakeError that says what `error` means to a person. A DmslakeError is returned as it is."""
    if isinstance(error, DmslakeError):
        return error
    if isinstance(error, ClientError):
        return _of_answer(error)
    if isinstance(error, BotoCoreError):
        return _of_no_answer(error)
    if isinstance(error, ValueError) and str(error).startswith("Invalid endpoint"):  # botocore has no type of its own for it
        return ConfigurationError(
            f"{error}", "endpoint", "write AWS_ENDPOINT_URL, or that of one service, as http://HOST:PORT or https://HOST"
        )
    return DmslakeError(f"{type(error).__name__}: {error}", "unexpected", "this is a defect: report it with the log")


@contextmanager
def translated() -> Iterator[None]:
    """Within it, what boto3 raises comes out as a DmslakeError; other errors pass as they are."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise aws_error(error) from error


def _of_answer(error: ClientError) -> DmslakeError:
    """Of an answer that is an error."""
    code, what = error_code(error), _what(error)
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) or 0)
    if code in _MISSING:
        name, todo = _MISSING[code]
        return ConfigurationError(what, name, todo)
    if code in CLOCK_SKEWED:
        return ConfigurationError(what, "clock", "set this machine's clock")
    if code in BAD_CREDENTIALS:
        return ConfigurationError(what, "credentials", "renew the AWS credentials (aws sso login, AWS_PROFILE, AWS_ACCESS_KEY_ID …)")
    if code == ARCHIVED:  # its status is 403, and no policy helps
        todo = "bring it back (aws s3api restore-object), then run again; take the transition to an archive out of the lifecycle rule"
        return ConfigurationError(what, "object-archived", todo)
    if code in ACCESS_DENIED or status == 403:
        return ConfigurationError(what, "access-denied", f"allow {_action(error)} in the IAM policy and the bucket or key policy")
    if code in ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "301"):
        return ConfigurationError(what, "region", "set AWS_REGION to the region of the bucket or table")
    if code in RETRYABLE or status >= 500 or status == 429:
        return RetryLater(what, "aws-busy", "run again; if it stays so, look at the AWS health dashboard")
    return DmslakeError(what, f"aws-{code}" if code else "aws-error", "read the message; the log has the request")


def _of_no_answer(error: BotoCoreError) -> DmslakeError:
    """Of an error before or instead of an answer."""
    if isinstance(error, boto.ProfileNotFound):
        return ConfigurationError(f"{error}", "profile", "correct AWS_PROFILE, or add the profile by `aws configure`")
    credentials = (boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError)
    sso = (boto.SSOError, boto.UnauthorizedSSOTokenError)
    if isinstance(error, (*credentials, *sso)) or type(error).__name__ in ("TokenRetrievalError", "SSOTokenLoadError"):
        return ConfigurationError(
            f"no usable AWS credentials: {error}", "credentials", "set AWS_PROFILE, run `aws sso login` or `aws configure`"
        )
    if isinstance(error, boto.NoRegionError):
        return ConfigurationError("no AWS region is known", "region", "set AWS_REGION, or a region in the profile")
    if isinstance(error, boto.ConnectionError):  # also a time-out while connecting, a proxy, a certificate
        return ConfigurationError(
            f"{error}", "unreachable", "check the network, AWS_REGION and AWS_ENDPOINT_URL (is the server there running?)"
        )
    if isinstance(error, (boto.HTTPClientError, boto.IncompleteReadError)):
        return RetryLater(f"the connection to AWS broke: {error}", "connection", "run again")
    return ConfigurationError(f"{type(error).__name__}: {error}", "boto3", "check the AWS configuration files and settings")


# How the operations of a service end, of those that the jobs ask for; the least ambiguous first.
_NOUNS = {
    "dynamodb": ("Item", "Items", "DescribeTable"),
    "s3": ("Object", "Objects", "Bucket", "Upload", "Versioning", "Policy", "Location"),
    "glue": ("Database", "Table", "Tables", "Partition", "Partitions", "JobRun", "JobRuns", "Job", "Jobs", "Trigger", "Triggers"),
}


def _what(error: ClientError) -> str:
    """Operation, code and AWS's own words."""
    answer = error.response.get("Error", {})
    parts = [f"AWS answered {error_code(error) or 'an error'} to {error.operation_name}"]
    for name in ("BucketName", "Key", "Resource"):
        if answer.get(name):
            parts.append(f"{name} {answer.get(name)}")
    if answer.get("Message"):
        parts.append(str(answer.get("Message")))
    return ": ".join(parts)


def _action(error: ClientError) -> str:
    """What an IAM policy calls the operation, where its name is not the operation's."""
    service = {
        "HeadObject": "s3:GetObject", "ListObjectsV2": "s3:ListBucket", "HeadBucket": "s3:ListBucket",
        "ListObjectVersions": "s3:ListBucketVersions", "DeleteObjects": "s3:DeleteObject",
        "CreateMultipartUpload": "s3:PutObject", "UploadPart": "s3:PutObject", "CompleteMultipartUpload": "s3:PutObject",
        "UploadPartCopy": "s3:PutObject and s3:GetObjectVersion", "ListMultipartUploads": "s3:ListBucketMultipartUploads",
        "GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration", "ListParts": "s3:ListMultipartUploadParts",
        "GetObject": "s3:GetObject (of an older version s3:GetObjectVersion)", "Scan": "dynamodb:Scan", "Query": "dynamodb:Query",
        "CreateTable": "dynamodb:CreateTable or glue:CreateTable", "GetBucketEncryption": "s3:GetEncryptionConfiguration",
    }  # fmt: skip
    name = error.operation_name
    return service.get(name) or next((f"{each}:{name}" for each, nouns in _NOUNS.items() if name.endswith(nouns)), name)

"""What a person reads where boto3 raised."""

from __future__ import annotations

from typing import Any

import pytest
from botocore import exceptions as boto
from botocore.exceptions import ClientError

from glue_jobs.aws.clients import aws_error, make_clients, translated
from glue_jobs.core.errors import ConfigurationError, DmslakeError, RetryLater, UsageError


def client_error(code: str, status: int = 400, operation: str = "PutObject") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}, operation)  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (client_error("NoSuchBucket", 404), ConfigurationError, "no-bucket"),
        (client_error("ResourceNotFoundException"), ConfigurationError, "no-resource"),
        (client_error("EntityNotFoundException"), ConfigurationError, "no-resource"),
        (client_error("AccessDenied", 403), ConfigurationError, "access-denied"),
        (client_error("SomethingNew", 403), ConfigurationError, "access-denied"),
        (client_error("InvalidObjectState", 403, "GetObject"), ConfigurationError, "object-archived"),
        (client_error("ExpiredToken"), ConfigurationError, "credentials"),
        (client_error("InvalidAccessKeyId", 403), ConfigurationError, "credentials"),
        (client_error("RequestTimeTooSkewed", 403), ConfigurationError, "clock"),
        (client_error("PermanentRedirect", 301), ConfigurationError, "region"),
        (client_error("SlowDown", 503), RetryLater, "aws-busy"),
        (client_error("ThrottlingException"), RetryLater, "aws-busy"),
        (client_error("SomethingNew", 500), RetryLater, "aws-busy"),
        (client_error("EntityTooLarge"), DmslakeError, "aws-EntityTooLarge"),
        (client_error(""), DmslakeError, "aws-error"),
        (boto.ProfileNotFound(profile="p"), ConfigurationError, "profile"),
        (boto.NoCredentialsError(), ConfigurationError, "credentials"),
        (boto.PartialCredentialsError(provider="p", cred_var="v"), ConfigurationError, "credentials"),
        (boto.UnauthorizedSSOTokenError(), ConfigurationError, "credentials"),
        (boto.TokenRetrievalError(provider="sso", error_msg="m"), ConfigurationError, "credentials"),
        (boto.NoRegionError(), ConfigurationError, "region"),
        (boto.EndpointConnectionError(endpoint_url="http://h:1", error="e"), ConfigurationError, "unreachable"),
        (boto.ConnectTimeoutError(endpoint_url="http://h:1"), ConfigurationError, "unreachable"),
        (boto.ReadTimeoutError(endpoint_url="http://h:1"), RetryLater, "connection"),
        (boto.IncompleteReadError(actual_bytes=1, expected_bytes=2), RetryLater, "connection"),
        (boto.ParamValidationError(report="r"), ConfigurationError, "boto3"),
        (ValueError("Invalid endpoint: h:1"), ConfigurationError, "endpoint"),
        (ValueError("another"), DmslakeError, "unexpected"),
        (RuntimeError("x"), DmslakeError, "unexpected"),
    ],
)
def test_errors_are_grouped_by_what_a_person_does_next(error: Exception, kind: type, code: str) -> None:
    """The group, a code for programs, and something to do."""
    out = aws_error(error)

    assert (type(out), out.code, bool(out.todo)) == (kind, code, True)


def test_the_message_has_operation_code_and_words_of_aws() -> None:
    """So that a log line is enough to search for."""
    out = aws_error(client_error("AccessDenied", 403, "UploadPart"))

    assert (out.message, "s3:PutObject" in out.todo) == ("AWS answered AccessDenied to UploadPart: m", True)


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("PutObject", "s3:PutObject"),
        ("AbortMultipartUpload", "s3:AbortMultipartUpload"),
        ("ListParts", "s3:ListMultipartUploadParts"),
        ("GetObject", "s3:GetObjectVersion"),
        ("UpdateItem", "dynamodb:UpdateItem"),
        ("Scan", "dynamodb:Scan"),
        ("GetTable", "glue:GetTable"),
        ("BatchUpdatePartition", "glue:BatchUpdatePartition"),
        ("StartJobRun", "glue:StartJobRun"),
    ],
)
def test_what_is_denied_is_named_as_policies_name_it(operation: str, action: str) -> None:
    """With its service: what a person is told to allow must be an action."""
    todo = aws_error(client_error("AccessDenied", 403, operation)).todo

    assert action in todo.removeprefix("allow ").replace(")", "").split(" ")


def test_an_error_of_our_own_passes() -> None:
    """It already says what it has to say."""
    error = UsageError("x")

    assert aws_error(error) is error


def test_translated_turns_what_boto3_raises() -> None:
    """The original stays as the cause."""
    with pytest.raises(RetryLater) as caught, translated():
        raise client_error("SlowDown", 503)

    assert isinstance(caught.value.__cause__, ClientError)


def test_translated_lets_other_errors_pass() -> None:
    """A defect is not dressed up as a configuration error."""
    with pytest.raises(KeyError), translated():
        raise KeyError("x")


def test_a_server_that_is_not_there_is_a_configuration_error(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection names the endpoint and the variable."""
    monkeypatch.setattr("glue_jobs.aws.clients.Clients.max_attempts", 1)
    clients: Any = make_clients({**environment, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"})

    with pytest.raises(ConfigurationError, match=r"127\.0\.0\.1:9.*\n.*AWS_ENDPOINT_URL"), translated():
        clients.s3.list_buckets()


def test_an_endpoint_without_http_is_a_configuration_error(environment: dict[str, str]) -> None:
    """It is said as it was given, with the variable and the form that is expected."""
    with pytest.raises(ConfigurationError, match=r"localhost:9\n.*AWS_ENDPOINT_URL.*http://HOST:PORT") as caught:
        assert make_clients({**environment, "AWS_ENDPOINT_URL": "localhost:9"}).s3

    assert (caught.value.code, caught.value.exit_code) == ("endpoint", 3)


def test_a_missing_bucket_is_named(s3: Any) -> None:
    """The person has to know which setting is wrong."""
    with pytest.raises(ConfigurationError, match="no-such-bucket-here") as caught, translated():
        s3.list_objects_v2(Bucket="no-such-bucket-here")

    assert caught.value.code == "no-bucket"

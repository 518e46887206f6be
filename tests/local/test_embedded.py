"""The embedded AWS: what stands there after the start, and that it answers as AWS does where moto alone doesn't."""

from __future__ import annotations

import datetime
import http.client
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from infra.local.embedded import EmbeddedAws, EmbeddedAwsError
from tests.local.jobs import until

WRITERS = 16
ROUNDS = 25


def test_an_upload_is_as_old_as_its_first_part(aws: EmbeddedAws) -> None:
    """moto by itself says that every upload is of 2010."""
    s3 = aws.client("s3")
    upload = s3.create_multipart_upload(Bucket=aws.lake_bucket, Key="old/file")["UploadId"]
    s3.upload_part(Bucket=aws.lake_bucket, Key="old/file", UploadId=upload, PartNumber=1, Body=b"x")

    (entry,) = s3.list_multipart_uploads(Bucket=aws.lake_bucket, Prefix="old/")["Uploads"]

    age = datetime.datetime.now(datetime.timezone.utc) - entry["Initiated"]
    assert abs(age) < datetime.timedelta(minutes=5)


def test_one_of_many_conditional_puts_wins(aws: EmbeddedAws) -> None:
    """Sixteen writers with the same condition: in every round exactly one is told that it held."""
    dynamodb = aws.client("dynamodb")

    def put(attempt: tuple[int, int]) -> bool:
        game, writer = attempt
        item = {"path": {"S": f"race/{game}"}, "LeaseOwner": {"S": str(writer)}}
        try:
            dynamodb.put_item(
                TableName=aws.state_table,
                Item=item,
                ConditionExpression="attribute_not_exists(#path)",
                ExpressionAttributeNames={"#path": "path"},
            )
        except dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        winners = [sum(pool.map(put, [(game, writer) for writer in range(WRITERS)])) for game in range(ROUNDS)]

    assert winners == [1] * ROUNDS


def test_counter_loses_no_conditional_update(aws: EmbeddedAws) -> None:
    """Writers that read, compare and write under a condition count up without a gap."""
    dynamodb = aws.client("dynamodb")
    key = {"path": {"S": "race/fence"}}
    dynamodb.put_item(TableName=aws.state_table, Item={**key, "Fence": {"N": "0"}})

    def add_one(_: int) -> None:
        while True:
            seen = dynamodb.get_item(TableName=aws.state_table, Key=key)["Item"]["Fence"]["N"]
            try:
                dynamodb.update_item(
                    TableName=aws.state_table,
                    Key=key,
                    UpdateExpression="SET Fence = :next",
                    ConditionExpression="Fence = :seen",
                    ExpressionAttributeValues={":seen": {"N": seen}, ":next": {"N": str(int(seen) + 1)}},
                )
            except dynamodb.exceptions.ConditionalCheckFailedException:
                continue
            return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add_one, range(80)))

    assert dynamodb.get_item(TableName=aws.state_table, Key=key)["Item"]["Fence"]["N"] == "80"


def test_environment_is_enough_for_boto3_in_another_process(aws: EmbeddedAws, tmp_path: Path) -> None:
    """A process that has nothing but that environment lists the lake bucket of this server."""
    aws.client("s3").put_object(Bucket=aws.lake_bucket, Key="seen/by-environment", Body=b"x")
    code = "import boto3; print(boto3.client('s3').list_objects_v2(Bucket='dmslake-lake', Prefix='seen/')['KeyCount'])"

    said = subprocess.run([sys.executable, "-c", code], env=aws.environment(), cwd=tmp_path, capture_output=True, text=True, check=True)

    assert said.stdout.strip() == "1"


def test_one_connection_serves_many_requests(aws: EmbeddedAws) -> None:
    """A body that the application does not read is not taken for the next request on the connection."""
    connection = http.client.HTTPConnection(urlsplit(aws.endpoint_url).netloc, timeout=30)
    statuses = []
    for body in (b"x" * 100_000, b"", b"y" * 10):
        connection.request("PUT", "/no-such-bucket/key", body=body)
        answer = connection.getresponse()
        answer.read()
        statuses.append((answer.status, answer.will_close))
    connection.close()

    assert statuses == [(404, False)] * 3


def test_body_in_chunks_arrives_whole(aws: EmbeddedAws) -> None:
    """Transfer-Encoding: chunked is unwrapped, and the connection goes on."""
    scope = "embedded/20260101/us-east-1/s3/aws4_request"
    signed = {"Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"}
    connection = http.client.HTTPConnection(urlsplit(aws.endpoint_url).netloc, timeout=30)
    address = f"/{aws.raw_bucket}/chunked"
    connection.request("PUT", address, iter([b"ab", b"c" * 70_000]), signed, encode_chunked=True)
    connection.getresponse().read()
    connection.request("GET", address, headers=signed)
    body = connection.getresponse().read()
    connection.close()

    assert body == b"ab" + b"c" * 70_000


def test_head_tells_the_length_of_the_object(aws: EmbeddedAws) -> None:
    """HEAD has the object's length and no body, so that the connection stays usable."""
    s3 = aws.client("s3")
    s3.put_object(Bucket=aws.raw_bucket, Key="ten", Body=b"0123456789")

    assert [s3.head_object(Bucket=aws.raw_bucket, Key="ten")["ContentLength"] for _ in range(3)] == [10, 10, 10]
    with pytest.raises(ClientError, match="404"):
        s3.head_object(Bucket=aws.raw_bucket, Key="eleven")


def test_listing_tells_when_an_object_was_written(aws: EmbeddedAws) -> None:
    """The time in a listing is the object's own: aware, in UTC, the same that HEAD tells."""
    s3 = aws.client("s3")
    s3.put_object(Bucket=aws.raw_bucket, Key="dated/one", Body=b"x")
    listed = s3.list_objects_v2(Bucket=aws.raw_bucket, Prefix="dated/")["Contents"][0]["LastModified"]
    age = datetime.datetime.now(datetime.timezone.utc) - listed

    assert listed.replace(microsecond=0) == s3.head_object(Bucket=aws.raw_bucket, Key="dated/one")["LastModified"]
    assert datetime.timedelta(seconds=-1) <= age < datetime.timedelta(minutes=5)


def test_multipart_upload_is_invisible_until_it_is_completed(aws: EmbeddedAws) -> None:
    """The property on which the commit stands: parts alone show nothing."""
    s3 = aws.client("s3")
    where = {"Bucket": aws.lake_bucket, "Key": "multi/file.parquet"}
    upload = s3.create_multipart_upload(**where, ChecksumAlgorithm="CRC32")["UploadId"]
    part = s3.upload_part(**where, UploadId=upload, PartNumber=1, Body=b"p" * 1000, ChecksumAlgorithm="CRC32")
    before = s3.list_objects_v2(Bucket=aws.lake_bucket, Prefix="multi/")["KeyCount"]
    parts = [{"PartNumber": 1, "ETag": part["ETag"], "ChecksumCRC32": part["ChecksumCRC32"]}]
    s3.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})

    assert before == 0
    assert s3.get_object(**where)["Body"].read() == b"p" * 1000


def test_two_embedded_aws_share_nothing(aws: EmbeddedAws) -> None:
    """Two servers with buckets of the same names run side by side, one with other arguments of its Spark jobs."""
    with EmbeddedAws(spark_arguments={"--driver_bytes": "0"}) as other:
        jobs = {job["Name"]: job["DefaultArguments"] for job in other.client("glue").get_jobs()["Jobs"]}
        other.client("s3").put_object(Bucket=other.raw_bucket, Key="only-here", Body=b"x")

        assert other.endpoint_url != aws.endpoint_url
        assert aws.client("s3").list_objects_v2(Bucket=aws.raw_bucket, Prefix="only-here")["KeyCount"] == 0
        assert (jobs["LoadInitial"]["--driver_bytes"], jobs["LoadInitial"]["--lake"]) == ("0", other.lake)
        assert "--driver_bytes" not in jobs["Controller"]


def test_it_can_be_started_again_and_begins_empty() -> None:
    """After a stop nothing is left: no folder, no port, no object."""
    aws = EmbeddedAws(jobs=())
    aws.start()
    first_url, folder = aws.endpoint_url, aws.work_folder
    aws.client("s3").put_object(Bucket=aws.raw_bucket, Key="k", Body=b"x")
    aws.stop()
    aws.stop()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", urlsplit(first_url).port or 0), timeout=5).close()
    with aws:
        count = aws.client("s3").list_objects_v2(Bucket=aws.raw_bucket)["KeyCount"]

    assert count == 0
    assert not folder.exists()


def test_second_start_is_refused(aws: EmbeddedAws) -> None:
    """A server that runs is not started over."""
    with pytest.raises(EmbeddedAwsError, match="already running"):
        aws.start()


def test_taken_port_is_told() -> None:
    """A start that fails says why, and leaves no folder."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        aws = EmbeddedAws(port=taken.getsockname()[1])

        with pytest.raises(EmbeddedAwsError, match=r"did not start.*in use"):
            aws.start()
    with pytest.raises(EmbeddedAwsError, match="not started"):
        _ = aws.work_folder


def test_server_ends_with_its_owner(tmp_path: Path) -> None:
    """kill -9 of the process that started the server leaves neither the server nor its folder behind."""
    code = (
        "import threading; from infra.local.embedded import EmbeddedAws; aws = EmbeddedAws(jobs=()).start(); "
        "print(aws.endpoint_url, flush=True); threading.Event().wait()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    port = urlsplit(owner.stdout.readline().strip()).port or 0
    answered, folders = _answers(port), len(list(tmp_path.iterdir()))
    owner.kill()
    owner.wait()
    owner.stdout.close()
    until(lambda: not _answers(port), "the server ends")
    until(lambda: not list(tmp_path.iterdir()), "its folder is removed")

    assert (answered, folders) == (True, 1)


def test_requests_of_many_threads_are_answered(aws: EmbeddedAws) -> None:
    """Thirty-two threads that put and get at once find what they put."""
    s3 = aws.client("s3")
    barrier = threading.Barrier(32)

    def put_and_get(number: int) -> bool:
        barrier.wait()
        body = bytes([number]) * 1000
        s3.put_object(Bucket=aws.lake_bucket, Key=f"many/{number}", Body=body)
        return bool(s3.get_object(Bucket=aws.lake_bucket, Key=f"many/{number}")["Body"].read() == body)

    with ThreadPoolExecutor(32) as pool:
        assert all(pool.map(put_and_get, range(32)))


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True

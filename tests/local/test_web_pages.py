"""No web page drives the embedded AWS: a page that could would start processes on the machine of whoever looks at it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from infra.local.embedded import EmbeddedAws
from infra.local.session import embedded_client

STARTS_A_RUN = {"X-Amz-Target": "AWSGlue.StartJobRun", "Content-Type": "application/x-amz-json-1.1"}
RUN = json.dumps({"JobName": "Exits", "Arguments": {"--code": "0"}})
OTHER_HOSTS = [
    "evil.example",
    "evil.example:80",
    "127.0.0.1.evil.example",
    "localhost@evil",
    "raw.localhost",
    "0.0.0.0:1",
    "127.0.0.1:",
    "a b",
    "",
]
PREFLIGHT = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-amz-target"}


def asked(aws: EmbeddedAws, method: str, path: str, headers: Mapping[str, str], body: str = "") -> tuple[int, dict[str, str], str]:
    """Status, headers (small letters) and text of the answer to a request whose Host is the server's own unless given."""
    server = urlsplit(aws.endpoint_url).netloc
    connection = http.client.HTTPConnection(server, timeout=30)
    connection.request(method, path, body, {"Host": server, **headers})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text


def runs(aws: EmbeddedAws) -> list[str]:
    """The ids of all runs of the job, the newest first."""
    return [run["Id"] for run in aws.client("glue").get_job_runs(JobName="Exits")["JobRuns"]]


@pytest.mark.parametrize(
    "headers",
    [
        *({"Host": host} for host in OTHER_HOSTS),
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:4711"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_a_page_starts_no_run(aws: EmbeddedAws, headers: dict[str, str]) -> None:
    """By its own name for this machine (DNS rebinding), from its own address, by a name that no browser gives away: 403, and no process."""
    before = runs(aws)

    status, _, text = asked(aws, "POST", "/", {**STARTS_A_RUN, **headers}, RUN)

    assert (status, "AccessDenied" in text) == (403, True)
    assert runs(aws) == before


@pytest.mark.parametrize("headers", [PREFLIGHT, {}], ids=["preflight", "plain"])
def test_a_browser_that_asks_whether_it_may_is_told_no(aws: EmbeddedAws, headers: dict[str, str]) -> None:
    """OPTIONS, which no AWS client sends; nothing in the answer lets a page go on."""
    status, answered, _ = asked(aws, "OPTIONS", "/", headers)

    assert status == 403
    assert not [name for name in answered if name.startswith("access-control-")]


@pytest.mark.parametrize("path", ["/dmslake-raw?list-type=2", "/dmslake-raw/page", "/moto-api/data.json"])
def test_a_page_reads_nothing(aws: EmbeddedAws, path: str) -> None:
    """An image's or a script's address comes without Origin; what is answered to others names no site that may read it."""
    status, _, text = asked(aws, "GET", path, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"})
    _, headers, _ = asked(aws, "GET", path, {})

    assert (status, "AccessDenied" in text) == (403, True)
    assert "access-control-allow-origin" not in headers


def test_the_connection_goes_on_after_a_refusal(aws: EmbeddedAws) -> None:
    """The body of what was refused is not taken for the next request."""
    server = urlsplit(aws.endpoint_url).netloc
    connection = http.client.HTTPConnection(server, timeout=30)
    statuses = []
    for headers in ({"Origin": "https://evil.example"}, {}):
        connection.request("POST", "/", RUN, {**STARTS_A_RUN, **headers})
        answer = connection.getresponse()
        text = answer.read()
        statuses.append(answer.status)
    connection.close()
    aws.wait_for_run("Exits", json.loads(text)["JobRunId"])

    assert statuses == [403, 200]


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST", "[::1]:{port}", "127.0.0.1:1"])
def test_a_client_starts_a_run_by_each_name_of_this_machine(aws: EmbeddedAws, host: str) -> None:
    """Another port too: that of a tunnel."""
    status, _, text = asked(aws, "POST", "/", {**STARTS_A_RUN, "Host": host.format(port=urlsplit(aws.endpoint_url).port)}, RUN)

    assert status == 200
    assert aws.wait_for_run("Exits", json.loads(text)["JobRunId"])["JobRunState"] == "SUCCEEDED"


@pytest.mark.parametrize("service", ["s3", "dynamodb"])
def test_a_refused_client_is_told_what_to_do(aws: EmbeddedAws, service: str) -> None:
    """The SDK's error, of either kind of service, says which address is answered."""
    client = embedded_client(service, f"http://127.1:{urlsplit(aws.endpoint_url).port}")  # this machine, by a name that is not its own

    with pytest.raises(ClientError, match=r"AWS_ENDPOINT_URL=http://127\.0\.0\.1:PORT"):
        client.list_buckets() if service == "s3" else client.list_tables()


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_buckets_are_addressed_in_the_path(aws: EmbeddedAws, name: str) -> None:
    """boto3 does so by itself, for either name: none of our clients puts a bucket before the server's name, which would be refused."""
    s3 = embedded_client("s3", f"http://{name}:{urlsplit(aws.endpoint_url).port}")
    s3.put_object(Bucket=aws.raw_bucket, Key="path/style", Body=b"x")

    assert s3.list_objects_v2(Bucket=aws.raw_bucket, Prefix="path/")["KeyCount"] == 1

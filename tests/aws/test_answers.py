"""AWS's answers are read quickly, and as botocore reads them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import botocore.session
import botocore.utils
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError, ResponseParserFactory

from benchmarks.synthetic.aws import CREDENTIALS, Shape, SyntheticAws
from glue_jobs.aws.answers import quick_answers, read_time
from glue_jobs.aws.clients import make_clients
from tests.aws.faults import RawBody

FORMS = [
    "2024-05-17T10:00:00.000Z", "2024-05-17T10:00:00.123Z", "2024-05-17T10:00:00Z", "2024-05-17T10:00:00+0200", "20240517T100000Z",
    "Fri, 17 May 2024 10:00:00 GMT", 1715940000, 1715940000.25, "1715940000", "2024-13-17T10:00:00.000Z", "2024-05-17 10:00:00.000Z",
    "                       Z", "2024-05-17T24:00:00.000Z", "Thu, 29 Feb 2024 23:59:59 GMT", "Fri, 30 Feb 2024 10:00:00 GMT",
    "Fri, 17 Mai 2024 10:00:00 GMT", "Fri, 17 May 2024 1:00:000 GMT", "Mon, 17 May 2024 10:00:00 GMT", "Fri, 17 May 2024 24:00:00 GMT",
    "Friday, 17-May-24 10:00:00 GMT",
]  # fmt: skip


@pytest.mark.parametrize("value", FORMS)
def test_a_time_is_what_botocore_reads(value: Any) -> None:
    """Whatever its form; what is no time is refused by both."""
    assert _read(read_time, value) == _read(botocore.utils.parse_timestamp, value)


def test_the_clients_read_times_so() -> None:
    """Not by botocore's own reader, which takes most of a listing's time."""
    s3 = SyntheticAws(Shape(1, 20)).clients().s3

    entry = s3.list_objects_v2(Bucket="raw", Prefix="dms/shop/t00000/")["Contents"][0]

    assert entry["LastModified"].tzinfo is timezone.utc  # botocore's is one of dateutil's
    assert read_time("Fri, 17 May 2024 10:00:00 GMT").tzinfo is timezone.utc


PLAIN = "<Key>a/b</Key><LastModified>2024-05-17T10:00:00.000Z</LastModified><ETag>&quot;d41d&quot;</ETag><Size>12345678901</Size>"
AS_AWS = PLAIN.replace("<Size>", "<ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType><Size>")
AS_AWS += "<StorageClass>STANDARD</StorageClass>"
ENTRIES = {
    "plain": PLAIN,
    "what S3 tells of an object's checksum": f"{PLAIN}<ChecksumAlgorithm>CRC32</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType>",
    "two checksums": f"{PLAIN}<ChecksumAlgorithm>CRC32</ChecksumAlgorithm><ChecksumAlgorithm>SHA256</ChecksumAlgorithm>",
    "an owner": f"{PLAIN}<Owner><ID>1</ID><DisplayName>me</DisplayName></Owner><StorageClass>STANDARD</StorageClass>",
    "what is being restored": f"{PLAIN}<RestoreStatus><IsRestoreInProgress>true</IsRestoreInProgress></RestoreStatus>",
    "what no model knows": f"<New>1</New>{PLAIN}<Newer><A>1</A></Newer>",
    "another order": "<Size>1</Size><Key>a</Key>",
    "no text": "<Key/><ETag></ETag>",
    "characters": "<Key>a%2Fb &lt;&amp;&#xE9;\u00e9 +</Key>",
    "nothing": "",
    "as AWS writes them": AS_AWS,
    "quotes that are no entities": AS_AWS.replace("&quot;", '"'),
    "entities by number": AS_AWS.replace("&quot;", "&#34;"),
    "no quotes": AS_AWS.replace("&quot;", ""),
    "space between": AS_AWS.replace("><", ">\n  <"),
    "an attribute": AS_AWS.replace("<Size>", '<Size unit="byte">'),
    "a comment": AS_AWS.replace("<Size>", "<Size><!-- of the object -->"),
    "a character that may be in no document": AS_AWS.replace("a/b", "a\x01b"),
    "a line's end": AS_AWS.replace("a/b", "a\r\nb"),
    "a noncharacter": AS_AWS.replace("a/b", "a\uffffb"),
    "other scripts' digits": AS_AWS.replace("<Size>1", "<Size>\u0661"),
    "two checksums as AWS writes them": AS_AWS.replace("<ChecksumType>", "<ChecksumAlgorithm>CRC32</ChecksumAlgorithm><ChecksumType>"),
    "bytes that are no text": AS_AWS.replace("a/b", "a\udcffb"),
    "a time that never was": AS_AWS.replace("2024-05-17", "2024-13-17"),
    "an entry in an entry": f"{AS_AWS}<Contents>{AS_AWS}</Contents>",
    "an element that is not closed": f"{AS_AWS}<Owner>",
    "a version": f"{PLAIN}<VersionId>null</VersionId><IsLatest>true</IsLatest><StorageClass>GLACIER</StorageClass>",
    "an old version": f"{PLAIN}<IsLatest>false</IsLatest>",
    "a time of another form": "<Key>a</Key><LastModified>Fri, 17 May 2024 10:00:00 GMT</LastModified>",
    "no time": "<LastModified>yesterday</LastModified>",
    "no number": "<Size>many</Size>",
}  # fmt: skip
LISTINGS = {"ListObjectsV2": ("ListBucketResult", "Contents"), "ListObjectVersions": ("ListVersionsResult", "Version"),
            "ListObjectVersions, delete markers": ("ListVersionsResult", "DeleteMarker")}  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.parametrize("listing", LISTINGS)
@pytest.mark.parametrize("namespace", [' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"', ""], ids=["namespace", "no namespace"])
def test_a_listing_is_what_botocore_reads(listing: str, entry: str, namespace: str) -> None:
    """Whatever stands in its entries; what can't be read is refused by both."""
    session = botocore.session.Session()
    quick_answers(session)
    usual = ResponseParserFactory()
    usual.set_parser_defaults(timestamp_parser=read_time)
    shape = session.get_service_model("s3").operation_model(listing.split(",")[0]).output_shape
    root, name = LISTINGS[listing]
    inside = f"<{name}>{PLAIN}</{name}><{name}>{entry}</{name}><CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>"
    body = f'<?xml version="1.0"?><{root}{namespace}><IsTruncated>false</IsTruncated>{inside}</{root}>'.encode(errors="surrogateescape")

    quick = _parsed(session.get_component("response_parser_factory"), body, shape)

    assert quick == _parsed(usual, body, shape)
    assert quick is ValueError or len(next(value for key, value in quick.items() if key in ("Contents", "Versions", "DeleteMarkers"))) == 2


def test_the_clients_read_listings_so() -> None:
    """Also those that a session of boto3 makes."""
    s3: Any = SyntheticAws(Shape(1, 20)).clients().s3

    assert type(s3._endpoint._response_parser_factory.create_parser("rest-xml")).__module__ == "glue_jobs.aws.answers"


def test_a_page_is_read_once() -> None:
    """Before botocore's parser does, a handler of newer versions reads the whole answer to see whether it is an error."""
    s3: Any = SyntheticAws(Shape(1, 500)).clients().s3
    seen: list[int] = []
    s3.meta.events.register_first("before-parse.s3.*", lambda response_dict, **_: seen.append(len(response_dict["body"])))

    page = s3.list_objects_v2(Bucket="raw", Prefix="dms/shop/t00000/")

    assert (len(page["Contents"]), page["IsTruncated"]) == (501, False)
    assert [length < 1000 for length in seen] == [True]


@pytest.mark.parametrize("status", [200, 503])
def test_an_error_in_place_of_a_page_is_an_error(status: int) -> None:
    """Also one with status 200, in which nothing is cut."""
    body = b'<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>wait</Message></Error>'
    clients = make_clients(CREDENTIALS)
    clients.max_attempts = 1
    events: Any = clients.s3.meta.events
    events.register_last("before-send.s3", lambda request, **_: AWSResponse(request.url, status, {}, RawBody(body)))

    with pytest.raises(ClientError, match="SlowDown"):
        clients.s3.list_objects_v2(Bucket="raw", Prefix="dms/")


def _parsed(factory: Any, body: bytes, shape: Any) -> Any:
    try:
        return factory.create_parser("rest-xml").parse({"headers": {}, "status_code": 200, "body": body}, shape)
    except (ValueError, ResponseParserError):
        return ValueError


def _read(read: Any, value: Any) -> datetime | type[Exception]:
    try:
        found: datetime = read(value)
    except ValueError:
        return ValueError
    assert found.utcoffset() is not None
    return found.astimezone(timezone.utc)

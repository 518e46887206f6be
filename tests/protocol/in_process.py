"""An AWS inside this process: the embedded server's application without its sockets, so that a request costs a call, and what it
holds can be kept and put back. For a process of its own: it patches botocore and the process's `sleep`, and moto's state is global.
"""

from __future__ import annotations

import copyreg
import functools
import inspect
import io
import os
import pickle
import sys
import time
from typing import Any
from urllib.parse import unquote, urlsplit

import boto3
import botocore.client
import botocore.loaders
import botocore.regions
import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.httpsession import URLLib3Session
from moto.backends import get_backend
from moto.core.serialize import AttributePicker
from moto.s3.utils import _VersionedKeyStore

from infra.local.embedded import lake_lifecycle
from infra.local.server import EmbeddedApp, make_listings_quick
from infra.local.session import ACCESS_KEY, ACCOUNT, REGION, SECRET_KEY
from tests.aws.faults import RawBody

ENDPOINT = "http://127.0.0.1:9"  # nobody listens there
RAW, LAKE = "s3://raw/dms/", "s3://lake/lake/"
STATE_TABLE, DATABASE = "DMSCDC_Controller", "dmslake"
SHORT_SECONDS = 0.002
# What a service of moto's holds, by the names of the attributes.
_HELD = (("s3", "aws", "buckets"), ("dynamodb", REGION, "tables"), ("glue", REGION, "databases"))


def hurry() -> None:
    """Let waiting take no time: pauses between retries are botocore's and ours alike. To be called before our code is imported."""
    real = time.sleep
    time.sleep = lambda seconds: real(min(seconds, SHORT_SECONDS))  # type: ignore[assignment]
    # Every run makes clients anew, and most of that is what botocore makes of its JSON, which is the same each time.
    botocore.session.create_loader = functools.cache(botocore.loaders.create_loader)  # type: ignore[attr-defined]
    botocore.regions.EndpointProvider = _once_per_service(botocore.regions.EndpointProvider, "ruleset_data")  # type: ignore[attr-defined]
    creator: Any = botocore.client.ClientCreator
    creator._create_client_class = _once_per_service(creator._create_client_class, "service_name")


def _once_per_service(make: Any, argument: str) -> Any:
    """`make`, which remembers what it made for each value of one argument."""
    made: dict[Any, Any] = {}
    place = list(inspect.signature(make).parameters).index(argument)

    def remembered(*given: Any, **named: Any) -> Any:
        value = named[argument] if argument in named else given[place]
        key = value if isinstance(value, str) else id(value)
        if key not in made:
            made[key] = (make(*given, **named), value)
        return made[key][0]

    return remembered


class InProcessAws:
    """Buckets, state table and Glue database, as an installation has them."""

    def __init__(self) -> None:
        make_listings_quick()
        _make_items_quick()
        copyreg.pickle(_VersionedKeyStore, _reduce_versions)  # by itself it is pickled with the last version of each key only
        self._app = EmbeddedApp(_no_job_runs, frozenset())
        URLLib3Session.send = lambda _, request: self._answer(request)  # type: ignore[method-assign]
        os.environ.update({name: value for name, value in self.environment().items() if name.startswith("AWS_")})
        self._create()

    @staticmethod
    def environment() -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL": ENDPOINT,
            "DMSLAKE_STATE_TABLE": STATE_TABLE,
            "DMSLAKE_DATABASE": DATABASE,
        }

    def keep(self) -> bytes:
        """Everything that is stored now."""
        return pickle.dumps([getattr(get_backend(service)[ACCOUNT][region], name) for service, region, name in _HELD])

    def put_back(self, kept: bytes) -> None:
        """Store what was kept, and nothing else."""
        for (service, region, name), value in zip(_HELD, pickle.loads(kept), strict=True):
            setattr(get_backend(service)[ACCOUNT][region], name, value)

    def _create(self) -> None:
        session = boto3.Session(aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY, region_name=REGION)
        s3: Any = session.client("s3", endpoint_url=ENDPOINT)
        for uri in (RAW, LAKE):
            s3.create_bucket(Bucket=uri.split("/")[2])
        bucket = LAKE.split("/")[2]
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=lake_lifecycle())
        glue: Any = session.client("glue", endpoint_url=ENDPOINT)
        glue.create_database(DatabaseInput={"Name": DATABASE})

    def _answer(self, request: Any) -> AWSResponse:
        answer: list[tuple[str, list[tuple[str, str]]]] = []
        chunks = self._app(_environ(request), lambda status, headers, exc_info=None: answer.append((status, headers)))
        body = b"".join(chunks)
        status, headers = answer[-1]
        return AWSResponse(request.url, int(status.split(" ", 1)[0]), dict(headers), RawBody(body))


def _make_items_quick() -> None:
    """Let moto look up a DynamoDB value's type in its dictionary, instead of trying five spellings of each of ten types."""
    slow = AttributePicker.__call__

    def pick(self: AttributePicker, context: Any) -> Any:
        if (
            type(context.obj) is dict
            and getattr(context.shape, "parent", None) is not None
            and context.shape.parent.name == "AttributeValue"
        ):
            return context.obj.get(context.key)
        return slow(self, context)

    AttributePicker.__call__ = pick  # type: ignore[method-assign]


def _reduce_versions(store: Any) -> Any:
    return _with_versions, (list(store.lists()),)


def _with_versions(lists: Any) -> Any:
    store = _VersionedKeyStore()
    for key, versions in lists:
        store.setlist(key, versions)
    return store


def _no_job_runs(environ: Any, start_response: Any) -> Any:
    raise AssertionError("no job is started here")


def _environ(request: Any) -> dict[str, Any]:
    """The request as WSGI has it."""
    url = urlsplit(request.url)
    body = _bytes(request.body)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(url.path, "latin-1"),
        "RAW_URI": request.url[len(f"{url.scheme}://{url.netloc}") :],
        "QUERY_STRING": url.query,
        "SERVER_NAME": url.netloc,
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": url.netloc,
        "wsgi.url_scheme": url.scheme,
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.version": (1, 0),
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in request.headers.items():
        key = name.upper().replace("-", "_")
        environ[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value.decode() if isinstance(value, bytes) else str(value)
    environ["CONTENT_LENGTH"] = str(len(body))
    return environ


def _bytes(body: Any) -> bytes:
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, (bytes, bytearray)) else bytes(body.read())

"""AWS's answers, read quickly. A page of a listing has a thousand entries, for which botocore takes twenty times as long as this."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Callable

import botocore.session
import botocore.utils
from botocore.parsers import ResponseParserFactory, RestXMLParser

_FORM = "2024-05-17T10:00:00.000Z"  # as S3 writes them in listings
_HEADER = "Fri, 17 May 2024 10:00:00 GMT"  # and in headers
_MONTHS = {name: at for at, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
# The shapes of the entries of S3's listings, as botocore's model of S3 names them.
_ENTRIES = frozenset({"Object", "ObjectVersion", "DeleteMarkerEntry"})
# (member, how its text is read, whether it is a list of such values); None: not in the model, to be passed over.
_Reader = tuple[str, Callable[[str], Any], bool]
# An entry as S3 and MinIO write it, of plain characters only: elements without attributes, entities and space between them.
_PLAIN = r"[^<>&\"\x00-\x1f\x7f\ufffe\uffff]*"
_CONTENTS = re.compile(
    rf"<Contents><Key>({_PLAIN})</Key><LastModified>(\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{3}}Z)</LastModified>"
    rf"<ETag>(?:&quot;|\"|&#34;)({_PLAIN})(?:&quot;|\"|&#34;)</ETag>"
    r"((?:<ChecksumAlgorithm>\w+</ChecksumAlgorithm>)*)(?:<ChecksumType>(\w+)</ChecksumType>)?"
    r"<Size>(\d+)</Size>(?:<StorageClass>(\w+)</StorageClass>)?</Contents>",
    re.ASCII,
)
_ALGORITHM = re.compile(r">(\w+)<", re.ASCII)
_LISTING = "ListObjectsV2"
_CUT = "dmslake_entries"  # of an answer: its entries, where they are no longer in its body


def quick_answers(session: botocore.session.Session) -> None:
    """Let the session's clients read times with `read_time`, and listings by a shorter way than botocore's."""
    factory = _Factory()
    factory.set_parser_defaults(timestamp_parser=read_time)
    session.register_component("response_parser_factory", factory)
    # Newer versions of botocore read each answer twice, first to see whether it is an error: a page without its entries is short. With a
    # name that begins with a wildcard this comes before their own handlers. Older ones have no such event: there the parser cuts.
    session.register(f"before-parse.*.{_LISTING}", lambda **given: _cut_entries(given["response_dict"]))


def _cut_entries(answer: dict[str, Any]) -> None:
    """Take the entries out of the body of a listing's page, if all of them are of the usual form, and read them."""
    if _CUT in answer or answer["status_code"] != 200:
        return
    answer[_CUT] = None
    fields = _CONTENTS.groups
    try:
        rest, *pieces = _CONTENTS.split(answer["body"].decode())
        entries = list(map(_entry, *(pieces[at :: fields + 1] for at in range(fields))))
    except ValueError:
        return  # no UTF-8, or no time: botocore says what is wrong
    rest += "".join(pieces[fields :: fields + 1])
    if entries and "<Contents" not in rest:
        answer.update({_CUT: entries, "body": rest.encode()})


def _entry(key: str, modified: str, etag: str, algorithms: str, kind: str | None, size: str, storage: str | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"Key": key, "LastModified": read_time(modified), "ETag": f'"{etag}"', "Size": int(size)}
    if algorithms:
        entry["ChecksumAlgorithm"] = _ALGORITHM.findall(algorithms)
    if kind is not None:
        entry["ChecksumType"] = kind
    if storage is not None:
        entry["StorageClass"] = storage
    return entry


def read_time(value: Any) -> datetime:
    """The time in an answer, aware; any form that botocore reads."""
    if isinstance(value, str):
        try:
            if len(value) == len(_FORM) and value[-1] == "Z" and value[10] == "T":
                return datetime.fromisoformat(value[:-1] + "+00:00")
            if len(value) == len(_HEADER) and value[3:5] == ", " and value[25:] == " GMT":
                return _of_header(value)
        except (ValueError, KeyError):
            pass
    found: datetime = botocore.utils.parse_timestamp(value)
    return found


def _of_header(text: str) -> datetime:
    """Each answer with an object has its time: by dateutil's guesses that took a sixth of a small GET's processor time."""
    clock = datetime.fromisoformat(f"{text[12:16]}-{_MONTHS[text[8:11]]:02}-{text[5:7]}T{text[17:25]}")
    return clock.replace(tzinfo=timezone.utc)


class _Factory(ResponseParserFactory):
    def create_parser(self, protocol_name: str) -> Any:
        if protocol_name == "rest-xml":
            return _Parser(timestamp_parser=read_time)
        return super().create_parser(protocol_name)


class _Parser(RestXMLParser):
    """botocore's, with shorter ways for the entries of listings. An entry that holds more than plain values goes botocore's way."""

    def __init__(self, **defaults: Any) -> None:
        super().__init__(**defaults)
        self._readers: dict[str, dict[str, _Reader | None]] = {name: {} for name in _ENTRIES}

    def parse(self, response: Any, shape: Any) -> Any:
        if shape is not None and shape.name == f"{_LISTING}Output":
            _cut_entries(response)
        parsed = super().parse(response, shape)
        if response.get(_CUT):
            parsed["Contents"] = response[_CUT]
        return parsed

    def _handle_structure(self, shape: Any, node: Any) -> Any:
        readers = self._readers.get(shape.name)
        if readers is None or isinstance(node, list):
            return super()._handle_structure(shape, node)  # type: ignore[misc]
        parsed: dict[str, Any] = {}
        for child in node:
            if len(child):
                return super()._handle_structure(shape, node)  # type: ignore[misc]
            if child.tag not in readers:
                readers[child.tag] = self._reader(shape, child.tag.rpartition("}")[2])
            reader = readers[child.tag]
            if reader is None:
                continue
            member, read, is_list = reader
            value = read(child.text or "")
            if is_list:
                parsed.setdefault(member, []).append(value)
            else:
                parsed[member] = value
        return parsed

    def _reader(self, shape: Any, tag: str) -> _Reader | None:
        """How to read the elements with this tag, without its namespace."""
        for member, of_member in shape.members.items():
            if self._member_key_name(of_member, member) == tag:  # type: ignore[attr-defined]
                is_list = of_member.type_name == "list"
                kind = (of_member.member if is_list else of_member).type_name
                return member, _READ.get(kind, str), is_list
        return None


def _is_true(text: str) -> bool:
    return text == "true"


_READ: Mapping[str, Callable[[str], Any]] = {"integer": int, "long": int, "boolean": _is_true, "timestamp": read_time}

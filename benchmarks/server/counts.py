"""What the S3 server was asked and how many bytes it moved, as differences of its own counters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SAMPLE = re.compile(r"^(?P<name>\w+)(\{(?P<labels>.*)\})? (?P<value>\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Counts:
    """requests: by operation. received_bytes: what the server was sent; sent_bytes: what it answered."""

    requests: Mapping[str, int] = field(default_factory=dict)
    received_bytes: int = 0
    sent_bytes: int = 0

    def since(self, before: Counts) -> Counts:
        """What was added since `before`."""
        requests = {name: count - before.requests.get(name, 0) for name, count in self.requests.items()}
        return Counts(
            {name: count for name, count in sorted(requests.items()) if count},
            self.received_bytes - before.received_bytes,
            self.sent_bytes - before.sent_bytes,
        )

    @property
    def request_count(self) -> int:
        return sum(self.requests.values())


def read_metrics(text: str, requests: str, received: str, sent: str) -> Counts:
    """Counts out of a page in Prometheus's text format, by the names of its metrics; only those of the type s3."""
    found: dict[str, int] = {}
    bytes_of = {received: 0, sent: 0}
    for line in text.splitlines():
        sample = _SAMPLE.match(line)
        if not sample:
            continue
        labels = dict(_LABEL.findall(sample["labels"] or ""))
        if labels.get("type", "s3") != "s3":
            continue
        value = int(float(sample["value"]))
        if sample["name"] == requests:
            found[labels["name"]] = found.get(labels["name"], 0) + value
        elif sample["name"] in bytes_of:
            bytes_of[sample["name"]] += value
    return Counts(found, bytes_of[received], bytes_of[sent])

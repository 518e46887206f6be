"""Several runs in this process at once, told apart by the host name they send to: one may be killed or held at any of its requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.httpsession import URLLib3Session

from tests.protocol.wire import Killed, Request, Rule, read_request

Send = Callable[[], Any]


@dataclass(frozen=True)
class Point:
    """A place in a run: the request with this number among those of a kind ('' for all), before it is sent or after it took effect."""

    kind: str
    number: int
    after: bool

    def matches(self, request: Request) -> bool:
        return not self.kind or bool(getattr(request, self.kind)())


@dataclass
class Counter:
    """Says once that a point is reached."""

    point: Point
    seen: int = -1
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_here(self, request: Request) -> bool:
        with self._lock:
            self.seen += self.point.matches(request)
            here = self.point.matches(request) and self.seen == self.point.number
            self.seen += here  # never again
            return here


@dataclass
class Traffic:
    """All requests of this process. rules: by the name of the run, what happens to its requests; those of others are just sent."""

    endpoint: str
    rules: dict[str, Rule] = field(default_factory=dict)

    @contextmanager
    def watched(self) -> Iterator[Traffic]:
        real = URLLib3Session.send
        server = urlsplit(self.endpoint)

        def send(session: URLLib3Session, request: Any) -> Any:
            url = urlsplit(request.url)
            if url.hostname == server.hostname:
                return real(session, request)
            request.url = url._replace(netloc=server.netloc).geturl()
            rule = self.rules.get(url.hostname or "")
            return real(session, request) if rule is None else rule(read_request(request), lambda: real(session, request))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(URLLib3Session, "send", send)
            yield self

    def environment(self, environment: Mapping[str, str], name: str) -> dict[str, str]:
        """The environment for a run that is told from others by `name`."""
        return {**environment, "AWS_ENDPOINT_URL": f"http://{name}:{urlsplit(self.endpoint).port}"}


def death(point: Point) -> Rule:
    """The process dies at the point; nothing is sent after it."""
    counter, dead = Counter(point), threading.Event()

    def rule(request: Request, send: Send) -> Any:
        if dead.is_set():
            raise Killed
        if not counter.is_here(request):
            return send()
        if point.after:
            send()
        dead.set()
        raise Killed

    return rule


@dataclass
class Sleeper:
    """A run in a thread of its own that falls asleep at a point, with all its threads, and goes on when woken."""

    point: Point
    run: Callable[[], int]
    code: int | None = None
    error: BaseException | None = None
    _asleep: threading.Event = field(default_factory=threading.Event)
    _wake: threading.Event = field(default_factory=threading.Event)
    _moved: threading.Event = field(default_factory=threading.Event)  # it sleeps or has ended

    def __post_init__(self) -> None:
        self._counter = Counter(self.point)
        self._thread = threading.Thread(target=self._work, name="sleeper", daemon=True)

    def rule(self, request: Request, send: Send) -> Any:
        if self._wake.is_set() or not (self._counter.is_here(request) or self._asleep.is_set()):
            return send()
        first = not self._asleep.is_set()
        answer = send() if first and self.point.after else None
        self._asleep.set()
        self._moved.set()
        self._wake.wait()
        return answer if answer is not None else send()

    def start(self) -> bool:
        """Run up to the point; False if the run ended before it."""
        self._thread.start()
        assert self._moved.wait(60), "the run neither reached the point nor ended"
        return self._asleep.is_set()

    def wake(self) -> None:
        """Let it go on to its end."""
        self._wake.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "the run did not end"
        if self.error is not None:
            raise self.error

    def _work(self) -> None:
        try:
            self.code = self.run()
        except BaseException as error:  # noqa: BLE001 - raised again in wake
            self.error = error
        finally:
            self._moved.set()

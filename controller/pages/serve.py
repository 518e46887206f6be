"""The live pages: a WSGI application that only reads, and its server, which only this machine can reach.

Werkzeug parses requests, routes nothing and keeps the threads: it is small, well kept, and the embedded AWS stands on it too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from controller.pages import links
from controller.pages.pages import Pages
from controller.pages.render import ASSETS, LIVE_POLICY, Live, render
from controller.pages.views import ErrorPage, Page
from controller.ports import LOOPBACK, listening
from controller.reads import Reads
from glue_jobs.aws.translate import aws_error
from glue_jobs.core.errors import ConfigurationError, DmslakeError, RetryLater, UsageError

METHODS = ("GET", "HEAD")
AGAIN_SECONDS = 5.0  # a page that AWS has not answered asks again after so long
LONGEST_REFRESH_SECONDS = 86_400.0
IDLE_SECONDS = 30  # a connection that sends no request is closed after so long
# A page of another origin that has its name resolve to this machine sends its own name here. Any port: it may be a tunnel's.
_OWN_HOST = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", re.IGNORECASE)
HEADERS = {
    "Content-Security-Policy": LIVE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TITLES = {
    400: "That can't be asked", 403: "Not from there", 404: "There is no such thing", 405: "These pages only show", 421: "Not by this name",
    500: "This went wrong", 502: "This can't be read", 503: "No answer yet",
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """What an address shows. wants, may: names in its query, those that must be there and those that may. read: the page of them."""

    read: Callable[[Pages, Mapping[str, str]], Page]
    wants: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    refreshes: bool = False  # it changes while runs go on


PLACES: Mapping[str, Place] = {
    links.OVERVIEW: Place(lambda pages, given: pages.glance(), refreshes=True),
    links.TABLE: Place(lambda pages, given: pages.table(given["path"], given["at"]), ("path",), ("at",), refreshes=True),
    links.CHANGE: Place(lambda pages, given: pages.change(given["path"], given["change"]), ("path", "change")),
    links.DIFF: Place(lambda pages, given: pages.diff(given["path"], given["from"], given["to"]), ("path", "from"), ("to",)),
    links.EXPLAIN: Place(lambda pages, given: pages.explain(given["path"], given["key"]), ("path", "key")),
}


class _Refused(Exception):
    """An answer that is no page: status, message, what to do."""

    def __init__(self, status: int, message: str, todo: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.todo = status, message, todo


class App:
    """The WSGI application. every_seconds: pages that change load themselves again after so long, 0 for never.

    defect: is told of an exception that nobody expected, with the address.
    """

    def __init__(self, pages: Pages, reads: Reads, every_seconds: float, defect: Callable[[str, BaseException], None]) -> None:
        self._pages, self._reads, self._every_seconds, self._defect = pages, reads, every_seconds, defect

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        response = self.answer(Request(environ))
        response.headers.update(HEADERS)
        return response(environ, start_response)

    def answer(self, request: Request) -> Response:
        """The response to any request, without the headers that all have."""
        try:
            self._admit(request)
            if request.path in ASSETS:
                data, kind = ASSETS[request.path]
                return Response(data, content_type=kind)
            if request.path == "/favicon.ico":  # browsers ask for it by themselves, and say so in the console where there is none
                return Response(status=204)
            if request.path not in PLACES:
                raise _Refused(404, f"there is no page {request.path}", "begin at the overview")
            return self._page(PLACES[request.path], request.path, _query(request, PLACES[request.path]))
        except _Refused as refused:
            response = self._error(refused.status, refused.message, refused.todo)
            if refused.status == 405:
                response.headers["Allow"] = ", ".join(METHODS)
            return response

    def _admit(self, request: Request) -> None:
        """Refuse what is not a person's look at this server by its own name."""
        if not _OWN_HOST.fullmatch(request.environ.get("HTTP_HOST", "")):
            raise _Refused(421, "this server answers to 127.0.0.1 and localhost only", f"open http://{LOOPBACK}:PORT/")
        if request.method not in METHODS:
            raise _Refused(405, f"{request.method} is not answered: nothing can be changed here", "the pages show the commands that do")
        site, to = request.headers.get("Sec-Fetch-Site", ""), request.headers.get("Sec-Fetch-Dest", "")
        if site in ("cross-site", "same-site") and to != "document":
            raise _Refused(403, "another site's page asked for this", "")

    def _page(self, place: Place, address: str, given: Mapping[str, str]) -> Response:
        path = given.get("path", "")
        every = self._refresh(given.get("refresh", "")) if place.refreshes else 0.0
        try:
            # The seconds are no part of what is read: pages with and without share one read.
            asked = {name: text for name, text in given.items() if name != "refresh"}
            page = self._reads.ask((address, *sorted(asked.items())), lambda: place.read(self._pages, asked))
            return _html(render(page, Live(every, self._every_seconds)), 200)
        except Exception as error:  # noqa: BLE001 - the outermost place of a page: a person gets words
            failure = aws_error(error)
            status = _status(failure)
            if status == 500:
                self._defect(address, error)
            return self._error(status, failure.message, failure.todo, path)

    def _refresh(self, text: str) -> float:
        """Seconds until the page loads itself again, as its address says."""
        if not text:
            return self._every_seconds
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= LONGEST_REFRESH_SECONDS:
            raise _Refused(400, f"refresh is {text}: seconds between 0 and {LONGEST_REFRESH_SECONDS:.0f} were expected", "")
        return max(seconds, 1.0) if seconds else 0.0

    def _error(self, status: int, message: str, todo: str = "", path: str = "") -> Response:
        """An error as a page; where a later request may do better, one that asks again by itself."""
        again = AGAIN_SECONDS if status == 503 else 0.0
        page = ErrorPage(_TITLES[status], message, todo, path)
        try:
            response = _html(render(page, Live(again, AGAIN_SECONDS)), status)
        except Exception as error:  # noqa: BLE001 - a defect of the templates must not be answered by a traceback
            self._defect("the error's own page", error)
            response = Response(f"{page.title}: {message}\n{todo}\n", status, content_type="text/plain; charset=utf-8")
        if again:
            response.headers["Retry-After"] = f"{again:.0f}"
        return response


def _query(request: Request, place: Place) -> dict[str, str]:
    """The query's values by name: all that the place knows, '' for those not given."""
    known = (*place.wants, *place.may, *(("refresh",) if place.refreshes else ()))
    for name in request.args:
        if name not in known:
            raise _Refused(400, f"{name} is nothing that this page knows: it takes {', '.join(known) or 'nothing'}", "")
        if len(request.args.getlist(name)) > 1:
            raise _Refused(400, f"{name} is given more than once", "")
    given = {name: request.args.get(name, "") for name in known}
    for name in place.wants:
        if not given[name].strip():
            raise _Refused(400, f"{name} is not given", "fill it in")
    return given


def _status(failure: DmslakeError) -> int:
    if isinstance(failure, UsageError):
        return 404 if failure.code in ("unknown-table", "unknown-change") else 400
    if isinstance(failure, RetryLater):
        return 503
    return 500 if failure.code == "unexpected" and not isinstance(failure, ConfigurationError) else 502


def _html(text: str, status: int) -> Response:
    return Response(text, status, content_type="text/html; charset=utf-8")


class _Handler(WSGIRequestHandler):
    """One connection, of which nothing is logged: a line for each refresh would bury what a person wants to see."""

    timeout = IDLE_SECONDS
    server_version, sys_version = "dmslake", ""

    def log(self, type: str, message: str, *args: Any) -> None:
        """Say nothing."""


def listen(app: App, port: int = 0) -> BaseWSGIServer:
    """A server of the application on 127.0.0.1, which accepts connections once its `serve_forever` runs. port: 0 for any free one.

    Raises UsageError where the port is taken.
    """
    with listening(port) as taken:  # the server listens on a copy
        return make_server(LOOPBACK, taken.getsockname()[1], app, threaded=True, request_handler=_Handler, fd=taken.fileno())

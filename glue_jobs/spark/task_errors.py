"""Errors of tasks on their way through Spark, which hands on nothing of an exception but its text."""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from glue_jobs.aws.translate import translated
from glue_jobs.core.errors import DmslakeError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_MARK = re.compile(r"dmslake-error:([A-Za-z0-9+/=]+);")


class TaskError(Exception):
    """What a task raises instead of a DmslakeError; its text holds that error whole."""


def carried(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """`function` for a task: its DmslakeErrors, and what boto3 raises, reach `brought_back` in the driver."""

    @functools.wraps(function, assigned=(), updated=())
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with _carrying():
            return function(*args, **kwargs)

    return run


def carried_rows(function: Callable[[Any], Iterator[_R]]) -> Callable[[Any], Iterator[_R]]:
    """The same for a function of mapInArrow, which raises while its rows are asked for."""

    def run(batches: Any) -> Iterator[_R]:
        with _carrying():
            yield from function(batches)

    return run


@contextmanager
def _carrying() -> Iterator[None]:
    try:
        with translated():
            yield
    except DmslakeError as error:
        parts = [type(error).__name__, error.message, error.code, error.todo]
        text = base64.b64encode(json.dumps(parts).encode()).decode()
        raise TaskError(f"{error}\ndmslake-error:{text};") from error


@contextmanager
def brought_back() -> Iterator[None]:
    """In the driver: an error that Spark raises because of a `carried` one comes out as that one."""
    try:
        yield
    except DmslakeError:
        raise
    except Exception as error:
        found = _MARK.search(str(error))
        if found is None:
            raise
        name, message, code, todo = json.loads(base64.b64decode(found.group(1)))
        raise _kinds(DmslakeError).get(name, DmslakeError)(message, code, todo) from error


def _kinds(base: type[DmslakeError]) -> dict[str, type[DmslakeError]]:
    """The class and all below it, by name."""
    kinds = {base.__name__: base}
    for kind in base.__subclasses__():
        kinds.update(_kinds(kind))
    return kinds

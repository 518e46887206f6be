"""A property that is found out once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_T = TypeVar("_T")


class kept_property(Generic[_T]):  # noqa: N801 - used as functools.cached_property is
    """As functools.cached_property is from Python 3.12 on. Before, that has one lock for the property of all objects: of several files that
    threads work on, one at a time would be decoded.

    For objects that one thread works on at a time; of two that ask at the same moment both find it out.
    """

    def __init__(self, find_out: Callable[[Any], _T]) -> None:
        self._find_out = find_out
        self.__doc__ = find_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, found: None, owner: type) -> kept_property[_T]: ...
    @overload
    def __get__(self, found: object, owner: type) -> _T: ...
    def __get__(self, found: object | None, owner: type) -> kept_property[_T] | _T:
        if found is None:
            return self
        # In the object's own dictionary it comes before this descriptor, which has no __set__.
        value = found.__dict__[self._name] = self._find_out(found)
        return value

"""moto made to find out once what it finds out at every request: a request to DynamoDB or Glue costs it a third less."""

from __future__ import annotations

import functools
import string
from typing import Any

import moto.core.responses
from moto.core.serialize import BaseJSONSerializer
from moto.moto_api._internal.moto_random import MotoRandom

_ATTRIBUTE_VALUE = "AttributeValue"
_write_structure = BaseJSONSerializer._serialize_type_structure


def make_requests_quick() -> None:
    """For a process whose moto serves many requests. What is answered stays the same. May be called twice."""
    methods: Any = moto.core.responses.method_names_from_class
    if not hasattr(methods, "cache_info"):
        moto.core.responses.method_names_from_class = functools.cache(methods)
    MotoRandom.get_random_string = _random_string  # type: ignore[method-assign]
    BaseJSONSerializer._serialize_type_structure = _structure  # type: ignore[method-assign]


def _random_string(random: MotoRandom, length: int = 20, include_digits: bool = True, lower_case: bool = False) -> str:
    """The id of a request: drawn at once, not letter by letter."""
    pool = string.ascii_letters + string.digits if include_digits else string.ascii_letters
    drawn = "".join(random.choices(pool, k=length))
    return drawn.lower() if lower_case else drawn


def _structure(writer: BaseJSONSerializer, serialized: Any, value: Any, shape: Any, key: str) -> None:
    """A structure as moto writes it. Of a DynamoDB value, which has one of ten types, it would try five spellings of each."""
    if shape.name != _ATTRIBUTE_VALUE or type(value) is not dict or not key:
        _write_structure(writer, serialized, value, shape, key)
        return
    written: Any = writer.MAP_TYPE()
    for name, member in shape.members.items():
        if value.get(name) is not None:
            member.parent = shape
            writer._serialize(written, value[name], member, name)
    writer._default_serialize(serialized, written, shape, key)

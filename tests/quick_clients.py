"""botocore made to read its JSON once per process: making clients is then seven times faster (0.40 s and 0.06 s of one busy core for
the three of a job run), and the tests make thousands."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import botocore.client
import botocore.hooks
import botocore.loaders
import botocore.regions
import botocore.session


def remember_models() -> None:
    """Keep what botocore makes of its service models, which is the same each time. May be called twice."""
    if isinstance(botocore.session.create_loader, functools._lru_cache_wrapper):  # type: ignore[attr-defined]
        return
    botocore.session.create_loader = functools.cache(botocore.loaders.create_loader)  # type: ignore[attr-defined]
    botocore.regions.EndpointProvider = _once_per_service(botocore.regions.EndpointProvider, "ruleset_data")  # type: ignore[attr-defined]
    creator: Any = botocore.client.ClientCreator
    creator._create_client_class = _once_per_service(creator._create_client_class, "service_name")
    _share_event_names()


def _share_event_names() -> None:
    """Each session has names of its own, of the hundreds that it hands its handlers to: most of the time of making one."""
    aliaser, names = botocore.hooks.EventAliaser, dict[str, str]()
    make = aliaser.__init__

    def init(self: Any, event_emitter: Any, event_aliases: Any = None) -> None:
        make(self, event_emitter, event_aliases)
        if event_aliases is None or event_aliases == botocore.hooks.EVENT_ALIASES:  # a copy of a session's handlers has a copy of these
            self._alias_name_cache = names

    aliaser.__init__ = init  # type: ignore[method-assign]


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

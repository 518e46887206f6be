"""botocore made to do once per process what is the same each time: it reads its JSON once, so that making clients is seven times faster
(0.40 s and 0.06 s of one busy core for the three of a job run; the tests make thousands), and a request costs it a quarter less.

Requests carry a signature that is none: whoever answers here looks at no more than its scope.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import botocore.auth
import botocore.client
import botocore.hooks
import botocore.loaders
import botocore.regions
import botocore.session
import botocore.useragent


def remember_models() -> None:
    """Keep what botocore makes of its service models, which is the same each time. May be called twice."""
    if isinstance(botocore.session.create_loader, functools._lru_cache_wrapper):  # type: ignore[attr-defined]
        return
    botocore.session.create_loader = functools.cache(botocore.loaders.create_loader)  # type: ignore[attr-defined]
    botocore.regions.EndpointProvider = _once_per_service(botocore.regions.EndpointProvider, "ruleset_data")  # type: ignore[attr-defined]
    creator: Any = botocore.client.ClientCreator
    creator._create_client_class = _once_per_service(creator._create_client_class, "service_name")
    _share_event_names()
    _look_at_handlers_only()
    _remember_user_agents()
    _sign_nothing()


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


def _look_at_handlers_only() -> None:
    """Whether a handler takes any keyword stands in its code: botocore makes a signature of each handler of each client to see it."""
    really = botocore.hooks.accepts_kwargs

    def accepts_kwargs(handler: Any) -> bool:
        code = getattr(handler, "__code__", None)
        return bool(really(handler) if code is None else code.co_flags & inspect.CO_VARKEYWORDS)

    botocore.hooks.accepts_kwargs = accepts_kwargs  # type: ignore[attr-defined]


def _remember_user_agents() -> None:
    """Each request says twice who sends it; nobody here reads it."""
    agent: Any = botocore.useragent.UserAgentString
    make = agent.to_string

    def to_string(self: Any) -> Any:
        said = self.__dict__.get("_said")
        if said is None:
            said = self.__dict__["_said"] = make(self)
        return said

    def with_client_config(self: Any, client_config: Any) -> Any:
        other = configured(self, client_config)
        other.__dict__.pop("_said", None)
        return other

    configured = agent.with_client_config
    agent.to_string, agent.with_client_config = to_string, with_client_config


def _sign_nothing() -> None:
    """Let a request name key, region and service, as moto wants them, and compute nothing of what it says."""
    auth: Any = botocore.auth.SigV4Auth
    auth.canonical_request = auth.string_to_sign = lambda *_: ""
    auth.signature = lambda *_: "0" * 64

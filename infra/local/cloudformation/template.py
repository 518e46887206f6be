"""Templates as text and as values."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

import yaml

from infra.local.cloudformation.moto_parts import ValidationError

Template = dict[str, Any]

_SUBSTITUTED = re.compile(r"\$\{([^!][^}]*)\}")
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml parses ten times as fast


class _TemplateLoader(_Loader):  # type: ignore[misc,valid-type]
    """YAML as CloudFormation reads it: short forms of the functions, and dates (`Version: 2012-10-17`) are strings."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in _Loader.yaml_implicit_resolvers.items()
    }


def _short_form(loader: Any, tag: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    if tag == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {tag if tag in ("Ref", "Condition") else f"Fn::{tag}": value}


_TemplateLoader.add_multi_constructor("!", _short_form)


def parse(text: str) -> Template:
    """The template of YAML or JSON; a value of its own for each caller."""
    parsed: Template = json.loads(_parsed_as_json(text))
    return parsed


@functools.lru_cache(maxsize=8)
def _parsed_as_json(text: str) -> str:
    """JSON, because a copy by `json.loads` is quicker than one by `deepcopy`."""
    try:
        parsed = yaml.load(text, _TemplateLoader)
    except yaml.YAMLError as error:
        raise ValidationError(message=f"Template format error: {error}") from None
    if not isinstance(parsed, dict) or not isinstance(parsed.get("Resources"), dict):
        raise ValidationError(message="Template format error: At least one Resources member must be defined.")
    if "Transform" in parsed:
        raise ValidationError(message="The embedded AWS knows no Transform; a template here must do without")
    return json.dumps(parsed)


def references(value: Any) -> Iterator[str]:
    """The names that Ref, GetAtt and Sub in `value` mention: of parameters, resources and pseudo parameters."""
    if isinstance(value, list):
        for entry in value:
            yield from references(entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            if key == "Ref":
                yield entry
            elif key == "Fn::GetAtt":
                yield entry[0]
            elif key == "Fn::Sub":
                text, given = (entry, {}) if isinstance(entry, str) else entry
                mentioned = (name.split(".")[0] for name in _SUBSTITUTED.findall(text))
                yield from (name for name in mentioned if name not in given)
                yield from references(given)
            else:
                yield from references(entry)

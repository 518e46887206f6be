"""One conditional UpdateItem or DeleteItem, put together from situations: each clause of its condition says what it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from glue_jobs.aws.attributes import typed


@dataclass
class Write:
    """An update under construction. Names and values are always aliased: `path` and many other words are reserved.

    conditions: situation → clause, all of which must hold.
    """

    path: str
    conditions: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)
    _values: dict[str, Any] = field(default_factory=dict)
    _sets: list[str] = field(default_factory=list)
    _removes: list[str] = field(default_factory=list)

    def require_item(self) -> Write:
        """The table still has its item; without this clause an update would make a stump of one."""
        self.conditions["the table's item exists"] = f"attribute_exists({self._name('path')})"
        return self

    def require(self, situation: str, attribute: str, value: Any) -> Write:
        """The attribute has this very value; None: it is absent, or NULL."""
        name = self._name(attribute)
        if value is None:
            clause = f"(attribute_not_exists({name}) OR {name} = {self._value(None)})"
        else:
            clause = f"{name} = {self._value(value)}"
        self.conditions[situation] = clause
        return self

    def require_none(self, situation: str, attribute: str) -> Write:
        """The attribute is absent, NULL, or a text that people write for nothing."""
        name = self._name(attribute)
        nothing = ", ".join(self._value(value) for value in (None, "", "null", "NULL", "None"))
        self.conditions[situation] = f"(attribute_not_exists({name}) OR {name} IN ({nothing}))"
        return self

    def set(self, values: Mapping[str, Any]) -> Write:
        self._sets.extend(f"{self._name(attribute)} = {self._value(value)}" for attribute, value in values.items())
        return self

    def remove(self, attributes: Iterable[str]) -> Write:
        self._removes.extend(self._name(attribute) for attribute in attributes)
        return self

    def request(self, table: str) -> dict[str, Any]:
        """The arguments of update_item."""
        parts = [word + ", ".join(items) for word, items in (("SET ", self._sets), ("REMOVE ", self._removes)) if items]
        request: dict[str, Any] = {
            "TableName": table,
            "Key": {"path": typed(self.path)},
            "UpdateExpression": " ".join(parts),
            "ConditionExpression": " AND ".join(self.conditions.values()),
            "ExpressionAttributeNames": self._names,
        }
        if self._values:
            request["ExpressionAttributeValues"] = self._values
        return request

    def deletion(self, table: str) -> dict[str, Any]:
        """The arguments of delete_item, under the same conditions."""
        request = self.request(table)
        del request["UpdateExpression"]
        return request

    def _name(self, attribute: str) -> str:
        alias = next((alias for alias, known in self._names.items() if known == attribute), f"#n{len(self._names)}")
        self._names[alias] = attribute
        return alias

    def _value(self, value: Any) -> str:
        alias = f":v{len(self._values)}"
        self._values[alias] = typed(value)
        return alias

"""DynamoDB tables."""

from __future__ import annotations

from typing import Any

from infra.local.cloudformation.resource import Properties, Resource, arn, backend

_SSE_NAMES = {"SSEEnabled": "Enabled", "SSEType": "SSEType", "KMSMasterKeyId": "KMSMasterKeyId"}


class Table(Resource):
    """A table with its protection: point-in-time recovery, encryption, no deletion by accident."""

    TYPE = "AWS::DynamoDB::Table"
    NAME = "TableName"
    HANDLED = frozenset(
        {
            *("TableName", "KeySchema", "AttributeDefinitions", "BillingMode", "DeletionProtectionEnabled"),
            *("PointInTimeRecoverySpecification", "SSESpecification"),
        }
    )
    REPLACES = frozenset({"KeySchema", "AttributeDefinitions"})

    def attributes(self) -> dict[str, str]:
        """The ARN."""
        return {"Arn": arn("dynamodb", f"table/{self.name}")}

    def create(self) -> None:
        """Makes the table; it is there at once."""
        given = self.properties
        backend("dynamodb").create_table(
            self.name,
            schema=given["KeySchema"],
            throughput=None,
            attr=given["AttributeDefinitions"],
            global_indexes=[],
            indexes=[],
            streams=None,
            billing_mode=given["BillingMode"],
            sse_specification=_encryption(given),
            tags=[],
            deletion_protection_enabled=given.get("DeletionProtectionEnabled", False),
            warm_throughput=None,
        )
        self._protect(given)

    def update(self, properties: Properties) -> None:
        """Changes billing and protection."""
        table = backend("dynamodb").get_table(self.name)
        table.billing_mode = properties["BillingMode"]
        table.sse_specification = _encryption(properties)
        table.deletion_protection_enabled = properties.get("DeletionProtectionEnabled", False)
        self._protect(properties)

    def delete(self) -> None:
        """Deletes the table unless it is protected."""
        backend("dynamodb").delete_table(self.name)

    def _protect(self, properties: Properties) -> None:
        recovery = properties.get("PointInTimeRecoverySpecification", {"PointInTimeRecoveryEnabled": False})
        backend("dynamodb").update_continuous_backups(self.name, recovery)


def _encryption(properties: Properties) -> dict[str, Any] | None:
    given = properties.get("SSESpecification")
    if given is None:
        return None
    # Without a key moto makes an RSA key for AWS's own, for each start of the embedded AWS.
    return {"KMSMasterKeyId": arn("kms", "alias/aws/dynamodb"), **{_SSE_NAMES[name]: value for name, value in given.items()}}

"""IAM roles and managed policies. moto checks their syntax; nobody here acts on them."""

from __future__ import annotations

import json

from infra.local.cloudformation.resource import PARTITION, Properties, Resource, backend, only
from infra.local.session import ACCOUNT

_INLINE = frozenset({"PolicyName", "PolicyDocument"})


class ManagedPolicy(Resource):
    """A policy that several roles have. Ref gives its ARN."""

    TYPE = "AWS::IAM::ManagedPolicy"
    NAME = "ManagedPolicyName"
    HANDLED = frozenset({"ManagedPolicyName", "Description", "PolicyDocument"})
    REPLACES = frozenset({"Description"})

    @property
    def physical_resource_id(self) -> str:
        """The ARN."""
        return f"arn:{PARTITION}:iam::{ACCOUNT}:policy/{self.name}"

    def create(self) -> None:
        """Makes the policy."""
        given = self.properties
        backend("iam").create_policy(given.get("Description"), "/", json.dumps(given["PolicyDocument"]), self.name, [])

    def update(self, properties: Properties) -> None:
        """A new default version; the one before goes, as CloudFormation does with five."""
        iam, policy_arn = backend("iam"), self.physical_resource_id
        before = iam.get_policy(policy_arn).default_version_id
        iam.create_policy_version(policy_arn, json.dumps(properties["PolicyDocument"]), True)
        iam.delete_policy_version(policy_arn, before)

    def delete(self) -> None:
        """Deletes the policy, if no role has it any more."""
        backend("iam").delete_policy(self.physical_resource_id)


class Role(Resource):
    """A role with its inline policies, and the managed ones attached."""

    TYPE = "AWS::IAM::Role"
    NAME = "RoleName"
    HANDLED = frozenset({"RoleName", "Description", "AssumeRolePolicyDocument", "ManagedPolicyArns", "Policies"})

    def attributes(self) -> dict[str, str]:
        """The ARN."""
        return {"Arn": f"arn:{PARTITION}:iam::{ACCOUNT}:role/{self.name}"}

    def create(self) -> None:
        """Makes the role with all its policies."""
        trust = json.dumps(self.properties["AssumeRolePolicyDocument"])
        backend("iam").create_role(self.name, trust, "/", None, self.properties.get("Description", ""), [], "3600")
        self._put_policies(self.properties)

    def update(self, properties: Properties) -> None:
        """Takes the policies away and puts the new ones."""
        iam = backend("iam")
        iam.update_role_description(self.name, properties.get("Description", ""))
        iam.update_assume_role_policy(self.name, json.dumps(properties["AssumeRolePolicyDocument"]))
        self._take_policies()
        self._put_policies(properties)

    def delete(self) -> None:
        """Deletes the role and its inline policies."""
        self._take_policies()
        backend("iam").delete_role(self.name)

    def _put_policies(self, properties: Properties) -> None:
        iam = backend("iam")
        for policy_arn in properties.get("ManagedPolicyArns", []):
            iam.attach_role_policy(policy_arn, self.name)
        for policy in properties.get("Policies", []):
            only(policy, _INLINE, "Policies")
            iam.put_role_policy(self.name, policy["PolicyName"], json.dumps(policy["PolicyDocument"]))

    def _take_policies(self) -> None:
        iam = backend("iam")
        role = iam.get_role(self.name)
        for policy_arn in list(role.managed_policies):
            iam.detach_role_policy(policy_arn, self.name)
        for policy_name in list(iam.list_role_policies(self.name)):
            iam.delete_role_policy(self.name, policy_name)

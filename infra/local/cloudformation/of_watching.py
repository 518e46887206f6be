"""What people see runs by: log groups, topic and subscription, rule, alarms and dashboard. Here they are shown and never act."""

from __future__ import annotations

import json
from typing import Any

from infra.local.cloudformation.resource import Properties, Resource, arn, backend, only

_TARGET = frozenset({"Id", "Arn", "InputTransformer"})


class LogGroup(Resource):
    """A log group. The logs of runs here are files."""

    TYPE = "AWS::Logs::LogGroup"
    NAME = "LogGroupName"
    HANDLED = frozenset({"LogGroupName", "RetentionInDays", "KmsKeyId"})

    def attributes(self) -> dict[str, str]:
        """The ARN."""
        return {"Arn": arn("logs", f"log-group:{self.name}:*")}

    def create(self) -> None:
        """Makes the log group."""
        backend("logs").create_log_group(self.name, {}, kmsKeyId=self.properties.get("KmsKeyId"))
        self._keep(self.properties)

    def update(self, properties: Properties) -> None:
        """Changes how long it keeps logs, and its key."""
        backend("logs").groups[self.name].kms_key_id = properties.get("KmsKeyId")
        self._keep(properties)

    def delete(self) -> None:
        """Deletes the log group."""
        backend("logs").delete_log_group(self.name)

    def _keep(self, properties: Properties) -> None:
        if "RetentionInDays" in properties:
            backend("logs").put_retention_policy(self.name, properties["RetentionInDays"])
        else:
            backend("logs").delete_retention_policy(self.name)


class Topic(Resource):
    """A topic. Ref gives its ARN."""

    TYPE = "AWS::SNS::Topic"
    NAME = "TopicName"
    HANDLED = frozenset({"TopicName", "DisplayName", "KmsMasterKeyId"})

    @property
    def physical_resource_id(self) -> str:
        """The ARN."""
        return arn("sns", self.name)

    def attributes(self) -> dict[str, str]:
        """The name."""
        return {"TopicName": self.name, "TopicArn": self.physical_resource_id}

    def create(self) -> None:
        """Makes the topic."""
        backend("sns").create_topic(self.name)
        self.update(self.properties)

    def update(self, properties: Properties) -> None:
        """Changes its title and its key."""
        topic = backend("sns").get_topic(self.physical_resource_id)
        topic.display_name = properties.get("DisplayName", "")
        topic.kms_master_key_id = properties.get("KmsMasterKeyId", "")

    def delete(self) -> None:
        """Deletes the topic."""
        backend("sns").delete_topic(self.physical_resource_id)


class Subscription(Resource):
    """Somebody who gets what is published. Ref gives its ARN."""

    TYPE = "AWS::SNS::Subscription"
    HANDLED = frozenset({"TopicArn", "Protocol", "Endpoint"})
    REPLACES = HANDLED

    @property
    def physical_resource_id(self) -> str:
        """The ARN."""
        return self.name

    def create(self) -> None:
        """Subscribes; nobody here asks for a confirmation, nothing is sent."""
        given = self.properties
        self.name = backend("sns").subscribe(given["TopicArn"], given["Endpoint"], given["Protocol"]).arn

    def delete(self) -> None:
        """Ends the subscription."""
        backend("sns").unsubscribe(self.name)


class TopicPolicy(Resource):
    """Who may publish to topics."""

    TYPE = "AWS::SNS::TopicPolicy"
    HANDLED = frozenset({"Topics", "PolicyDocument"})
    REPLACES = frozenset({"Topics"})

    def create(self) -> None:
        """Puts it on the topics."""
        self.update(self.properties)

    def update(self, properties: Properties) -> None:
        """Puts it on the topics."""
        for topic_arn in properties["Topics"]:
            backend("sns").get_topic(topic_arn).policy = json.dumps(properties["PolicyDocument"])

    def delete(self) -> None:
        """Leaves the policy that a topic has by itself: of its own account alone."""
        for topic_arn in self.properties["Topics"]:
            topic = backend("sns").get_topic(topic_arn)
            topic.policy = json.dumps(topic._create_default_topic_policy(topic.sns_backend.region_name, topic.account_id, topic.name))


class Rule(Resource):
    """A rule of EventBridge. No event of Glue is made here, so it never fires."""

    TYPE = "AWS::Events::Rule"
    NAME = "Name"
    HANDLED = frozenset({"Name", "Description", "EventPattern", "State", "Targets"})

    def attributes(self) -> dict[str, str]:
        """The ARN."""
        return {"Arn": arn("events", f"rule/{self.name}")}

    def create(self) -> None:
        """Makes the rule with its targets."""
        self.update(self.properties)

    def update(self, properties: Properties) -> None:
        """Puts pattern and targets in place of those before."""
        events = backend("events")
        events.put_rule(
            self.name,
            description=properties.get("Description"),
            event_pattern=json.dumps(properties["EventPattern"]),
            state=properties.get("State", "ENABLED"),
        )
        self._take_targets()
        events.put_targets(self.name, None, [dict(only(target, _TARGET, "Targets")) for target in properties.get("Targets", [])])

    def delete(self) -> None:
        """Deletes the rule with its targets."""
        self._take_targets()
        backend("events").delete_rule(self.name, None)

    def _take_targets(self) -> None:
        events = backend("events")
        ids = [target["Id"] for target in events.describe_rule(self.name, None).targets]
        events.remove_targets(self.name, None, ids)


class Alarm(Resource):
    """An alarm of a metric. Nothing writes metrics here, so its state stays as it began."""

    TYPE = "AWS::CloudWatch::Alarm"
    NAME = "AlarmName"
    HANDLED = frozenset(
        {
            *("AlarmName", "AlarmDescription", "Namespace", "MetricName", "Dimensions", "Statistic", "Period", "EvaluationPeriods"),
            *("DatapointsToAlarm", "Threshold", "ComparisonOperator", "TreatMissingData", "AlarmActions", "OKActions"),
        }
    )

    def attributes(self) -> dict[str, str]:
        """The ARN."""
        return {"Arn": arn("cloudwatch", f"alarm:{self.name}")}

    def create(self) -> None:
        """Makes the alarm."""
        self.update(self.properties)

    def update(self, properties: Properties) -> None:
        """PutMetricAlarm overwrites."""
        given: dict[str, Any] = properties
        backend("cloudwatch").put_metric_alarm(
            self.name,
            namespace=given["Namespace"],
            metric_name=given["MetricName"],
            comparison_operator=given["ComparisonOperator"],
            evaluation_periods=given["EvaluationPeriods"],
            datapoints_to_alarm=given.get("DatapointsToAlarm"),
            period=given["Period"],
            threshold=given["Threshold"],
            statistic=given["Statistic"],
            description=given.get("AlarmDescription", ""),
            dimensions=given.get("Dimensions", []),
            alarm_actions=given.get("AlarmActions", []),
            ok_actions=given.get("OKActions", []),
            treat_missing_data=given.get("TreatMissingData"),
        )

    def delete(self) -> None:
        """Deletes the alarm."""
        backend("cloudwatch").delete_alarms([self.name])


class Dashboard(Resource):
    """A dashboard; its body is JSON."""

    TYPE = "AWS::CloudWatch::Dashboard"
    NAME = "DashboardName"
    HANDLED = frozenset({"DashboardName", "DashboardBody"})

    def create(self) -> None:
        """Makes the dashboard."""
        self.update(self.properties)

    def update(self, properties: Properties) -> None:
        """PutDashboard overwrites. A body that is no JSON is refused, as AWS does and moto doesn't."""
        json.loads(properties["DashboardBody"])
        backend("cloudwatch").put_dashboard(self.name, properties["DashboardBody"])

    def delete(self) -> None:
        """Deletes the dashboard."""
        backend("cloudwatch").delete_dashboards([self.name])

"""Jobs, schedule, logs and alarms: the rules for what runs and who hears of it."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from controller.metrics import INSTALLATION, NAMESPACE, UNITS
from controller.runners import LOCAL_SCRIPTS
from glue_jobs.aws.buckets import MIN_ABORT_DAYS
from glue_jobs.core.settings import setting_names
from tests.infra.lake_stack import LakeStack
from tests.infra.rules import Rules, put, remove

rules = Rules()
ROOT = Path(__file__).parents[2]
R = "Resources"
# Arguments that Glue reads itself.
GLUES = {"extra-py-files", "additional-python-modules", "job-bookmark-option", "enable-metrics", "custom-logGroup-prefix"}


@rules("Another runtime has other versions of everything", put("Parameters/GlueVersion/AllowedValues", ["5.1", "4.0"]))
def runtimes_are_pinned(stack: LakeStack) -> Iterator[str]:
    version = stack.template["Parameters"]["GlueVersion"]
    if (version["Default"], sorted(version["AllowedValues"])) != ("5.1", ["5.0", "5.1", "6.0"]):
        yield "the parameter GlueVersion"
    for name, job in stack.jobs().items():
        spark = (job["Command"]["Name"], job["Command"]["PythonVersion"], job["GlueVersion"]) == (
            "glueetl",
            "3",
            stack.parameters["GlueVersion"],
        )
        shell = (job["Command"]["Name"], job["Command"]["PythonVersion"]) == ("pythonshell", "3.9")
        if not (shell if name == "Controller" else spark):
            yield name


@rules("A retry of Glue's waits for its own ghost's lease; a run without end is paid for", put(f"{R}/Apply/Properties/MaxRetries", 1))
def runs_are_bounded(stack: LakeStack) -> Iterator[str]:
    for name, job in stack.jobs().items():
        most = 1 if name == "Controller" else stack.parameters["MaxConcurrentRuns"]
        if (job["MaxRetries"], job["ExecutionProperty"]["MaxConcurrentRuns"]) != (0, most) or not 0 < job["Timeout"] <= 24 * 60:
            yield name


@rules(
    "A load that takes longer begins anew each hour: a person must be able to give it more time, and no more than uploads wait for",
    put(f"{R}/LoadInitial/Properties/Timeout", 480),
)
def one_parameter_says_how_long_a_run_may_take(stack: LakeStack) -> Iterator[str]:
    declared = stack.template["Parameters"]["JobTimeoutMinutes"]
    yield from (name for name in stack.jobs() if stack.template[R][name]["Properties"]["Timeout"] != {"Ref": "JobTimeoutMinutes"})
    if declared["MaxValue"] > (MIN_ABORT_DAYS - 1) * 24 * 60:
        yield "uploads of the longest run may be aborted in a lake bucket of one's own"


@rules("An argument that the program does not know is passed over", put(f"{R}/LoadInitial/Properties/DefaultArguments/--laek", "s3://a/b/"))
def arguments_are_settings_or_glues(stack: LakeStack) -> Iterator[str]:
    for name, job in stack.jobs().items():
        given = {each.removeprefix("--") for each in job["DefaultArguments"]}
        yield from (f"{name}: --{each}" for each in given - GLUES - set(setting_names()))
        if not {"lake", "state_table", "database", "wait_seconds"} <= given:
            yield f"{name}: a setting is missing"
        if job["DefaultArguments"].get("--compression") != (None if name == "Controller" else stack.parameters["Compression"]):
            yield f"{name}: compression"
        if name != "Controller" and job["DefaultArguments"].get("--job-bookmark-option") != "job-bookmark-disable":
            yield f"{name}: bookmarks"


@rules("The controller starts jobs by prefix and name", put(f"{R}/Adopt/Properties/Name", "Adopt"))
def jobs_are_found_by_their_prefix(stack: LakeStack) -> Iterator[str]:
    prefix = stack.jobs()["Controller"]["DefaultArguments"].get("--job_prefix", "")
    yield from (name for name, job in stack.jobs().items() if job["Name"] != prefix + name)
    if stack.resolved.outputs().get("JobPrefix", "") != prefix:
        yield "the output JobPrefix"


@rules("A command whose job is not there fails", remove(f"{R}/Erase"))
def every_command_has_its_job(stack: LakeStack) -> Iterator[str]:
    scripts = {name: job["Command"]["ScriptLocation"].rpartition("/")[2] for name, job in stack.spark_jobs().items()}
    yield from (job for job, script in LOCAL_SCRIPTS.items() if scripts.get(job) != script)


@rules(
    "A person's least rights are the job's: Rollback and Erase have roles of their own", put(f"{R}/Erase/Properties/Role", "LoadRole.Arn")
)
def each_job_has_its_role(stack: LakeStack) -> Iterator[str]:
    own = {"Controller": "ControllerRole", "Rollback": "RollbackRole", "Erase": "EraseRole"}
    yield from (name for name, job in stack.jobs().items() if job["Role"] != own.get(name, "LoadRole") + ".Arn")


@rules("A trigger that is made but not started looks like a schedule", put(f"{R}/Schedule/Properties/StartOnCreation", False))
def the_schedule_starts_the_controller(stack: LakeStack) -> Iterator[str]:
    triggers = list(stack.all_of("AWS::Glue::Trigger").values())
    if len(triggers) != (stack.parameters["ScheduleEnabled"] == "true"):
        yield "a trigger without schedule, or a schedule without trigger"
    for trigger in triggers:
        facts = {name: trigger[name] for name in ("Type", "StartOnCreation", "WorkflowName", "Actions", "Schedule")}
        expected = {"Type": "SCHEDULED", "StartOnCreation": True, "WorkflowName": "Workflow", "Actions": [{"JobName": "Controller"}]}
        if facts != {**expected, "Schedule": stack.parameters["ScheduleExpression"]}:
            yield str(facts)


@rules(
    "Logs that are never deleted are paid for, and hold names for ever",
    put(f"{R}/LoadInitial/Properties/DefaultArguments/--custom-logGroup-prefix", "/x"),
)
def logs_go_where_retention_is_set(stack: LakeStack) -> Iterator[str]:
    groups = {each["LogGroupName"]: each["RetentionInDays"] for each in stack.all_of("AWS::Logs::LogGroup").values()}
    if set(groups.values()) != {stack.parameters["LogRetentionDays"]}:
        yield str(groups)
    for name, job in stack.spark_jobs().items():
        if {f"{job['DefaultArguments']['--custom-logGroup-prefix']}/{kind}" for kind in ("output", "error")} != set(groups):
            yield name


@rules(
    "A failed run that nobody hears of is found when the lake is old",
    put(f"{R}/FailedRuns/Properties/EventPattern/detail/jobName/9", "Other"),
)
def failed_runs_of_every_job_are_told(stack: LakeStack) -> Iterator[str]:
    rule = stack.resolved.resource("FailedRuns")
    detail = rule["EventPattern"]["detail"]
    yield from set(stack.jobs()) ^ set(detail["jobName"])
    if not {"FAILED", "TIMEOUT"} <= set(detail["state"]) or [each["Arn"] for each in rule["Targets"]] != ["AlarmTopic"]:
        yield "states or target"


@rules("An alarm on a metric that nobody writes is silent for ever", put(f"{R}/LagAlarm/Properties/MetricName", "Lag"))
def alarms_are_on_metrics_that_the_controller_writes(stack: LakeStack) -> Iterator[str]:
    for name, alarm in stack.all_of("AWS::CloudWatch::Alarm").items():
        where = (alarm["Namespace"], alarm["Dimensions"])
        if where != (NAMESPACE, [{"Name": INSTALLATION, "Value": "StateTable"}]) or alarm["MetricName"] not in UNITS:
            yield name
        if alarm["AlarmActions"] != ["AlarmTopic"]:
            yield f"{name}: tells nobody"
    for metric in _dashboard_metrics(stack):
        if metric[0] == NAMESPACE and (metric[1] not in UNITS or metric[2:4] != [INSTALLATION, "StateTable"]):
            yield f"dashboard: {metric}"


def _dashboard_metrics(stack: LakeStack) -> Iterator[list[Any]]:
    (dashboard,) = stack.all_of("AWS::CloudWatch::Dashboard").values()
    for widget in json.loads(dashboard["DashboardBody"])["widgets"]:
        yield from widget["properties"].get("metrics", ())


@rules(
    "A controller that has stopped writes no metric that could be too high", put(f"{R}/SilenceAlarm/Properties/TreatMissingData", "ignore")
)
def silence_is_an_alarm(stack: LakeStack) -> Iterator[str]:
    silent = [each for each in stack.all_of("AWS::CloudWatch::Alarm").values() if each["MetricName"] == "Runs"]
    if len(silent) != (stack.parameters["ScheduleEnabled"] == "true"):
        yield "no alarm, or one without a schedule"
    for alarm in silent:
        if (alarm["TreatMissingData"], alarm["ComparisonOperator"], alarm["Threshold"]) != ("breaching", "LessThanThreshold", 1):
            yield str(alarm)


@rules(
    "What Glue installs must be what the program was tried with",
    put(f"{R}/GenerateFeed/Properties/DefaultArguments/--additional-python-modules", "Faker==1.0"),
)
def modules_from_pypi_are_those_of_the_feed_extra(stack: LakeStack) -> Iterator[str]:
    text = (ROOT / "setup.py").read_text("utf-8")
    (listed,) = [node.value for node in ast.parse(text).body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FEED"]
    wanted = {each.name: each.specifier for each in map(Requirement, ast.literal_eval(listed))}
    arguments = stack.jobs()["GenerateFeed"]["DefaultArguments"]["--additional-python-modules"]
    exact = dict(each.split("==") for each in arguments.split(","))
    if set(exact) != set(wanted) or not all(wanted[name].contains(version) for name, version in exact.items()):
        yield arguments


@rules(
    "A script that is not deployed can't be run, and a job without its script fails",
    put(f"{R}/Apply/Properties/Command/ScriptLocation", "s3://a/b/aply.py"),
)
def jobs_and_entry_scripts_belong_together(stack: LakeStack) -> Iterator[str]:
    there = {file.name for file in (ROOT / "glue_jobs").glob("*.py") if '__name__ == "__main__"' in file.read_text("utf-8")}
    prefix = f"s3://{stack.parameters['ArtifactBucket']}/{stack.parameters['ArtifactPrefix']}glue_jobs/"
    deployed = {job["Command"]["ScriptLocation"].removeprefix(prefix) for job in stack.spark_jobs().values()}
    yield from sorted(deployed ^ there)

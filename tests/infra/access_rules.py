"""Who may do what: the rules for roles, bucket policies and the topic's policy."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.infra.lake_stack import KEY, ROLES, LakeStack, statements
from tests.infra.rules import Rules, allow, put, remove

rules = Rules()
R = "Resources"
MULTIPART = ("s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")


@rules("A wildcard allows what nobody thought of, and what AWS adds next year", allow("JobPolicy", "s3:Get*", resource="arn:aws:s3:::a/b"))
def no_wildcard_in_an_action(stack: LakeStack) -> Iterator[str]:
    for role, statement in stack.allowed():
        yield from (f"{role}: {action}" for action in statement.actions if "*" in action)


@rules("What is allowed on everything is allowed on other people's things", allow("TablePolicy", "glue:GetTable"))
def a_resource_of_everything_needs_a_condition(stack: LakeStack) -> Iterator[str]:
    for role, statement in stack.allowed():
        if "*" in statement.resources and not statement.condition:
            yield f"{role}: {statement.actions} on * without a condition"


@rules("Buckets may hold more than ours", put(f"{R}/TablePolicy/Properties/PolicyDocument/Statement/3/Resource", "arn:aws:s3:::raw/*"))
def objects_only_below_a_prefix_of_ours(stack: LakeStack) -> Iterator[str]:
    lake, given = stack.bucket("Lake"), stack.parameters
    ours = {
        f"{stack.bucket('Raw')}/{given['RawPrefix']}*",
        f"{lake}/{given['LakePrefix']}*",
        f"{lake}/{given['LakePrefix']}*_changes/*",
        f"{lake}/_changes/{given['LakePrefix']}*",
        f"{lake}/{given['WorkPrefix']}*",
        f"{given['ArtifactBucket']}/{given['ArtifactPrefix']}*",
    }
    for role, statement in stack.allowed():
        places = {each.removeprefix("arn:aws:s3:::") for each in statement.resources if each.startswith("arn:aws:s3:::") and "/" in each}
        yield from (f"{role}: {statement.actions} on {place}" for place in places - ours)


@rules(
    "A deleted version is gone for good, and a rollback needs it", allow("LoadRole", "s3:DeleteObjectVersion", resource="arn:aws:s3:::a/b")
)
def only_erase_deletes_versions(stack: LakeStack) -> Iterator[str]:
    for role, statement in stack.allowed():
        if "s3:DeleteObjectVersion" in statement.actions and role != "EraseRole":
            yield role


@rules("Else an administrator's script deletes them by mistake", remove(f"{R}/LakeBucketPolicy/Properties/PolicyDocument/Statement/2"))
def the_lake_bucket_denies_it_to_all_others(stack: LakeStack) -> Iterator[str]:
    for policy in stack.all_of("AWS::S3::BucketPolicy").values():
        if policy["Bucket"] == "CreatedLakeBucket" and not any(
            each.effect == "Deny"
            and each.actions == ("s3:DeleteObjectVersion",)
            and each.principal == "*"
            and each.condition == {"ArnNotEquals": {"aws:PrincipalArn": "EraseRole.Arn"}}
            for each in statements(policy["PolicyDocument"])
        ):
            yield "no such statement"


@rules("No run may end the promise that changes can be undone", allow("EraseRole", "s3:PutBucketVersioning", resource="arn:aws:s3:::a"))
def nobody_changes_a_bucket(stack: LakeStack) -> Iterator[str]:
    for role, statement in stack.allowed():
        yield from (
            f"{role}: {action}" for action in statement.actions if action.startswith(("s3:PutBucket", "s3:PutLifecycle", "s3:DeleteBucket"))
        )


@rules("Raw is DMS's", allow("LoadRole", "s3:PutObject", resource={"Fn::Sub": "arn:aws:s3:::${RawBucket}/${RawPrefix}*"}))
def raw_is_only_read(stack: LakeStack) -> Iterator[str]:
    raw = f"arn:aws:s3:::{stack.bucket('Raw')}"
    for role, statement in stack.allowed():
        if any(each.startswith(raw) for each in statement.resources):
            yield from (f"{role}: {action}" for action in statement.actions if not action.startswith(("s3:Get", "s3:List")))


@rules(
    "A rollback copies what was written; new rows are not its business",
    allow("RollbackRole", "s3:GetObject", resource="arn:aws:s3:::raw/x"),
)
def rollback_reads_no_raw_file(stack: LakeStack) -> Iterator[str]:
    raw = f"arn:aws:s3:::{stack.bucket('Raw')}/"
    for statement in stack.role_statements("RollbackRole"):
        yield from (each for each in statement.resources if each.startswith(raw))


@rules("Only jobs that hold a table's lease write to the lake", allow("ControllerRole", "s3:DeleteObject", resource="arn:aws:s3:::a/b"))
def the_controller_writes_no_object(stack: LakeStack) -> Iterator[str]:
    for statement in stack.role_statements("ControllerRole"):
        yield from (
            each for each in statement.actions if each.startswith(("s3:Put", "s3:Delete", "s3:Abort", "glue:Create", "glue:Update"))
        )


@rules("A job that starts jobs could go on for ever", allow("LoadRole", "glue:StartJobRun", resource="arn:aws:glue:::job/x"))
def only_the_controller_starts_jobs_and_only_load_jobs(stack: LakeStack) -> Iterator[str]:
    loads = {f"arn:aws:glue:eu-central-1:123456789012:job/{name}" for name in ("LoadInitial", "LoadIncremental")}
    for role, statement in stack.allowed():
        if "glue:StartJobRun" in statement.actions and (role != "ControllerRole" or set(statement.resources) != loads):
            yield f"{role}: {statement.resources}"


@rules("StartJobRun takes the job's own role: nobody needs to hand one over", allow("ControllerRole", "iam:PassRole"))
def no_role_gets_at_others(stack: LakeStack) -> Iterator[str]:
    for role, statement in stack.allowed():
        yield from (f"{role}: {each}" for each in statement.actions if each.startswith(("iam:", "sts:")))


@rules(
    "An upload that can't be aborted is paid for until the week is over", allow("EraseRole", "s3:PutObject", resource="arn:aws:s3:::a/b")
)
def who_uploads_may_also_abort_and_look(stack: LakeStack) -> Iterator[str]:
    for role, statement in stack.allowed():
        if "s3:PutObject" in statement.actions and not set(MULTIPART) <= set(statement.actions):
            yield f"{role}: {statement.resources}"


@rules(
    "With a key, reading needs Decrypt and an upload both",
    put(f"{R}/JobPolicy/Properties/PolicyDocument/Statement/3", {"Ref": "AWS::NoValue"}),
)
def the_key_is_granted_when_used_and_only_then(stack: LakeStack) -> Iterator[str]:
    uses = stack.parameters["KmsKeyArn"]
    for role in ROLES:
        grants = [each for each in stack.role_statements(role) if any(action.startswith("kms:") for action in each.actions)]
        for service in ("s3", "dynamodb") if uses else ():
            through = {"StringEquals": {"kms:ViaService": f"{service}.eu-central-1.amazonaws.com"}}
            fitting = [each for each in grants if each.condition == through and each.resources == (KEY,)]
            if not any({"kms:GenerateDataKey", "kms:Decrypt"} <= set(each.actions) for each in fitting):
                yield f"{role}: {service}"
        if grants and not uses:
            yield f"{role}: a key that nobody gave"


@rules("Without it a missing key looks like a denied one", put(f"{R}/TablePolicy/Properties/PolicyDocument/Statement/2/Condition", {}))
def listing_is_limited_to_prefixes_but_tells_what_is_missing(stack: LakeStack) -> Iterator[str]:
    for role, statement in stack.allowed():
        if any(each.startswith("s3:ListBucket") for each in statement.actions) and set(statement.condition) != {"StringLikeIfExists"}:
            yield f"{role}: {statement.actions}: {statement.condition}"


@rules(
    "A role that more can take is a way in", put(f"{R}/LoadRole/Properties/AssumeRolePolicyDocument/Statement/0/Principal", {"AWS": "*"})
)
def only_glue_takes_the_roles(stack: LakeStack) -> Iterator[str]:
    for role in ROLES:
        for each in statements(stack.resolved.resource(role)["AssumeRolePolicyDocument"]):
            if (each.principal, each.actions) != ({"Service": "glue.amazonaws.com"}, ("sts:AssumeRole",)):
                yield f"{role}: {each.principal}"


@rules("Other databases have other owners", allow("TablePolicy", "glue:UpdateTable", resource="arn:aws:glue:::table/*"))
def the_catalog_only_in_our_database(stack: LakeStack) -> Iterator[str]:
    base = "arn:aws:glue:eu-central-1:123456789012:"
    ours = {base + "catalog", base + "database/Database", base + "table/Database/*"}
    for role, statement in stack.allowed():
        if any(each.startswith("glue:") and "JobRun" not in each for each in statement.actions):
            yield from (f"{role}: {each}" for each in set(statement.resources) - ours)


@rules("Plain HTTP can be read on its way", put(f"{R}/RawBucketPolicy/Properties/PolicyDocument/Statement/0/Effect", "Allow"))
def buckets_and_topic_by_tls_only(stack: LakeStack) -> Iterator[str]:
    documents = {name: each["PolicyDocument"] for name, each in stack.all_of("AWS::S3::BucketPolicy").items()}
    documents |= {name: each["PolicyDocument"] for name, each in stack.all_of("AWS::SNS::TopicPolicy").items()}
    for name, document in documents.items():
        plain = {"Bool": {"aws:SecureTransport": "false"}}
        if not any((each.effect, each.principal, each.condition) == ("Deny", "*", plain) for each in statements(document)):
            yield name


@rules(
    "Rows of a database are nobody else's", put(f"{R}/CreatedLakeBucket/Properties/PublicAccessBlockConfiguration/BlockPublicPolicy", False)
)
def no_bucket_is_public_or_has_acls(stack: LakeStack) -> Iterator[str]:
    names = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    for name, bucket in stack.all_of("AWS::S3::Bucket").items():
        if bucket.get("PublicAccessBlockConfiguration") != dict.fromkeys(names, True):
            yield f"{name}: public access"
        if bucket.get("OwnershipControls") != {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}:
            yield f"{name}: ownership"
    for name, policy in stack.all_of("AWS::S3::BucketPolicy").items():
        if any(each.effect == "Allow" for each in statements(policy["PolicyDocument"])):
            yield f"{name}: allows something"


@rules("A bucket that is used belongs to somebody who decided about it", remove(f"{R}/CreatedLakeBucket/Condition"))
def a_used_bucket_is_not_touched(stack: LakeStack) -> Iterator[str]:
    made = {
        "CreatedRawBucket": "RawBucket",
        "RawBucketPolicy": "RawBucket",
        "CreatedLakeBucket": "LakeBucket",
        "LakeBucketPolicy": "LakeBucket",
    }
    there = set(stack.all_of("AWS::S3::"))
    if set(made) - there != {name for name, given in made.items() if stack.parameters[given]} or there - set(made):
        yield ", ".join(sorted(there))


@rules("Other accounts could send mails in our name", remove(f"{R}/AlarmTopicPolicy/Properties/PolicyDocument/Statement/1/Condition"))
def the_topic_takes_only_events_and_our_alarms(stack: LakeStack) -> Iterator[str]:
    (policy,) = stack.all_of("AWS::SNS::TopicPolicy").values()
    for each in statements(policy["PolicyDocument"]):
        is_events = each.principal == {"Service": "events.amazonaws.com"}
        if (
            each.effect == "Allow"
            and not is_events
            and not (set(each.principal) == {"Service"} and "aws:SourceArn" in json.dumps(each.condition))
        ):
            yield each.sid


@rules(
    "EventBridge publishes to no topic whose policy has a condition for it",
    put(f"{R}/AlarmTopicPolicy/Properties/PolicyDocument/Statement/0/Condition", {"ArnEquals": {"aws:SourceArn": "x"}}),
)
def events_have_no_condition(stack: LakeStack) -> Iterator[str]:
    (policy,) = stack.all_of("AWS::SNS::TopicPolicy").values()
    for each in statements(policy["PolicyDocument"]):
        if each.principal == {"Service": "events.amazonaws.com"} and each.condition:
            yield each.sid


@rules(
    "Records of a table right below LakePrefix, as the AWS sample's are, lie beside that folder",
    put(f"{R}/TablePolicy/Properties/PolicyDocument/Statement/3/Resource", {"Fn::Sub": "arn:aws:s3:::${LakeBucket}/${LakePrefix}*"}),
)
def records_beside_the_lakes_folder_are_ours(stack: LakeStack) -> Iterator[str]:
    beside = f"arn:aws:s3:::{stack.bucket('Lake')}/_changes/{stack.parameters['LakePrefix']}*"
    for role in ("LoadRole", "RollbackRole", "EraseRole", "ControllerRole"):
        if not any("s3:GetObject" in each.actions and beside in each.resources for each in stack.role_statements(role)):
            yield role


@rules("China and GovCloud have other partitions", put(f"{R}/Database/Properties/CatalogId", "arn:aws:glue:::catalog"))
def arns_name_no_partition(stack: LakeStack) -> Iterator[str]:
    text = json.dumps({name: stack.template[name] for name in ("Resources", "Outputs")})
    yield from ["arn:aws:"] * text.count("arn:aws:")

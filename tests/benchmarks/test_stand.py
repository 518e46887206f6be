"""The server of a benchmark gives back the disk of what a repetition made."""

from __future__ import annotations

from benchmarks.server.stand import Stand
from infra.local.embedded import EmbeddedAws


def test_all_versions_of_what_is_marked_go_and_nothing_else(embedded_aws: EmbeddedAws) -> None:
    buckets = ("stand-plain", "stand-versioned")
    environment = {**embedded_aws.environment(), "AWS_ENDPOINT_URL_S3": embedded_aws.endpoint_url}
    stand = Stand("moto", environment, None, buckets)
    for bucket in buckets:
        stand.s3.create_bucket(Bucket=bucket)
    stand.s3.put_bucket_versioning(Bucket=buckets[1], VersioningConfiguration={"Status": "Enabled"})
    for bucket in buckets:
        for key in ("base/a.parquet", "lake/w1_cold_feed1234/a.parquet", "lake/w1_cold_feed1234/b.parquet"):
            for body in (b"old", b"new"):
                stand.s3.put_object(Bucket=bucket, Key=key, Body=body)
        stand.s3.delete_object(Bucket=bucket, Key="lake/w1_cold_feed1234/b.parquet")

    stand.drop("feed1234")

    for bucket in buckets:
        left = stand.s3.list_object_versions(Bucket=bucket)
        assert {each["Key"] for each in left["Versions"]} == {"base/a.parquet"}
        assert not left.get("DeleteMarkers")

"""Gather, plan, dispatch, report. May import core, aws, protocol, the standard library, boto3; only `cli` may import click and rich."""

"""Gather, plan, dispatch, report.

May import core, aws, protocol, the standard library, boto3 and botocore; only `controller.cli` may import click and rich.
"""

"""Lease, converge, record, commit, catalog: the order of effects.

May import core, aws, the standard library, boto3 and botocore.
"""

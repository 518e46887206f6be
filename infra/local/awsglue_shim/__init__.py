"""A folder for PYTHONPATH: holds the stand-in for Glue's `awsglue` package."""

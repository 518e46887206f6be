"""S3, DynamoDB and the Glue catalog, without decisions. May import core, the standard library, boto3 and botocore."""

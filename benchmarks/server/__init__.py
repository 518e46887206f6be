"""The S3 server that all contenders of one run work on, and what it counts."""

"""A stand-in for Glue's `awsglue` package, as far as dmslake uses it; written from the public documentation.

On Glue the real package is there and this one is not on the path.
"""

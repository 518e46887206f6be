"""The Glue jobs of dmslake: entry scripts here, the layers they stand on in the folders. Imports nothing."""

__version__ = "0.1.0"

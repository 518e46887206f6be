"""Tests, mirroring the folders of the code."""

"""The embedded AWS and a stand-in for DMS, on a machine of one's own. Python 3.11."""

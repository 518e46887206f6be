"""Installations that no server keeps: tables, records and listings too large to be made for real, and what answers for them."""

"""The table, the changes of each workload, and what must come of them, computed by pyarrow alone."""

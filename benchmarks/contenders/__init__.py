"""All that is compared, by name, in the order in which tables and charts show it."""

"""From artifacts to a running stack: upload them under a prefix of their version, look at the change set, execute it, watch."""

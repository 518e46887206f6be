"""What dmslake is measured by alone: a job run in a process of its own, its requests, its memory."""

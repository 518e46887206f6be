"""A contender in a process of its own: what it is asked, how long it takes, how much memory its processes hold."""

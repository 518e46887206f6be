"""Values and decisions. May import a closed list of pure standard library modules: no IO, clock, randomness or logging."""

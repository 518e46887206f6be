"""Values and decisions. May import a closed list of pure standard modules: no IO, clock, randomness, logging."""

"""Measurements: figures are compared within one run on one machine, never across machines."""

"""All contenders by name, in the order in which tables and charts show them."""

from __future__ import annotations

import importlib

from benchmarks.contenders.contender import Contender

# (module, class): imported when asked for, so that what one contender lacks does not stop the others.
_PLACES = {
    "ours": ("ours", "Ours"),
    "plain": ("plain", "PlainSpark"),
    "plain-direct": ("plain", "PlainSparkDirect"),
    "sample": ("sample", "AwsSample"),
    "delta": ("delta", "Delta"),
    "delta-dv": ("delta", "DeltaWithVectors"),
    "delta-range": ("delta", "DeltaInRange"),
    "delta-matched": ("delta", "DeltaMatchedOnly"),
    "delta-rs": ("delta_rs", "DeltaRs"),
    "iceberg": ("iceberg", "Iceberg"),
    "iceberg-range": ("iceberg", "IcebergInRange"),
    "iceberg-matched": ("iceberg", "IcebergMatchedOnly"),
    "iceberg-mor": ("iceberg", "IcebergMergeOnRead"),
    "hudi": ("hudi", "Hudi"),
}
NAMES = tuple(_PLACES)


def module_of(name: str) -> str:
    """The module below this folder that a contender is in."""
    return _PLACES[name][0]


def contender(name: str) -> type[Contender]:
    """The class of a contender. Raises KeyError for an unknown name, ImportError where a package of it is missing."""
    module, kind = _PLACES[name]
    found: type[Contender] = getattr(importlib.import_module(f"benchmarks.contenders.{module}"), kind)
    return found

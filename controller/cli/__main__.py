"""`python -m controller.cli` is `dmslake`."""

from __future__ import annotations

import sys

from controller.cli import main

sys.exit(main())

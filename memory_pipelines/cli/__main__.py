"""``python -m memory_pipelines.cli``."""

import sys

from memory_pipelines.cli import main

sys.exit(main())

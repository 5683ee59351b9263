"""Assets, one module per group, with their checks beside them.

Belongs here: names, descriptions, partitions, lineage and metadata of what the pipeline makes. Does not
belong here: how it is made (``memory_pipelines.pipeline``) or when (``jobs``).
"""

import warnings

import dagster as dg

# Backfill policies have been "beta" for years; one warning per asset and process tells nobody anything.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

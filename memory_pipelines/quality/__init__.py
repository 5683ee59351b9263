"""Whether what the platform made can be trusted: suites of expectations, distributions, health metrics.

Does not belong here: making, changing or reading data, or what follows from a verdict: asset checks decide that.
"""

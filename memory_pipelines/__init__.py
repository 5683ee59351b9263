"""Long-term memory for AI agents, made from dialogue and behaviour logs by batch jobs.

The package is plain Python and knows nothing of Dagster. Nothing is imported here, so that
``from memory_pipelines.recall import Recall`` stays thin.
"""

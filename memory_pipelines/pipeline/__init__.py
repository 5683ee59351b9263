"""The steps of the platform over its stores: read, call one pure function, write.

Belongs here: what each asset does, so that the CLI, the benchmarks and Dagster do the same. Does not
belong here: what a step computes (the domain folders) or when it runs (``jobs``).

``files`` are landed; ``daily`` are steps 1-4 and end in ``commit_days``; ``derive`` are steps 5-7 on the owners
of one bucket that something touched, and end in ``publish_buckets``; ``life``, ``reflection``, ``reward``,
``forget`` and ``health`` work on what is published. Each step may be killed and run again.
"""

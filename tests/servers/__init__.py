"""Real servers for the contract tests: fetched once, started for a session, stopped at its end; no Docker.

Belongs here: where each server comes from and how it is started. Does not belong here: what is tested on it. A module
a server, each with ``fetch`` (into the cache, whole or not at all) and ``start``; ``together`` starts all of them.
"""

"""What leaves the platform whole and comes back: backup and restore.

Belongs here: the form of a backup, and reading and writing its parts. Does not belong here: which locks are held,
which persons were erased since (``pipeline.backups``).
"""

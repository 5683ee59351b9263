"""From source files to landed rows: readers, normalisation, the way into the lake.

Belongs here: everything between a log as somebody wrote it and the tables ``turns``, ``behaviour``
and ``quarantine``. Does not belong here: what a text means, and how turns become exchanges.
"""

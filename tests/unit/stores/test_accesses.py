"""Uses and markers on SQLite (the suite is shared with the contract tests)."""

from suites.access_suite import AccessSuite


class TestAccesses(AccessSuite):
    pass

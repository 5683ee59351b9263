"""Where a person stands, on SQLite (the suite is shared with the contract tests)."""

from suites.head_suite import HeadSuite


class TestHeads(HeadSuite):
    pass

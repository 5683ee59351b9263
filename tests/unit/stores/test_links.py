"""Identity links on SQLite (the suite is shared with the contract tests)."""

from suites.link_suite import LinkSuite


class TestLinks(LinkSuite):
    pass

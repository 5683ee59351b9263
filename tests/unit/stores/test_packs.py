"""The shelf of packs on SQLite (the suite is shared with the contract tests)."""

from suites.pack_suite import PackSuite


class TestPacks(PackSuite):
    pass

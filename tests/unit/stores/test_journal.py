"""The journal on SQLite."""

from suites.journal_suite import JournalSuite


class TestJournal(JournalSuite):
    pass

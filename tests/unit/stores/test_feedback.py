"""The ledger of uses as recall writes it, on SQLite."""

from suites.feedback_suite import FeedbackSuite


class TestFeedback(FeedbackSuite):
    pass

"""Publishing over in-memory stores; the suites are shared with the contract tests."""

from suites.publish_suite import PublishSuite, RecoverySuite


class TestPublish(PublishSuite):
    pass


class TestCrashes(RecoverySuite):
    pass

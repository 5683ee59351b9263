"""Publishing over in-memory stores; the suites are shared with the contract tests."""

from suites.publish_suite import CrashSuite, PublishSuite


class TestPublish(PublishSuite):
    pass


class TestCrashes(CrashSuite):
    pass

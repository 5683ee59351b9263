"""Puts this folder on the path: ``suites`` holds what unit and contract tests share."""

import pytest
from hypothesis import settings

# A loaded machine is no fault of the code: examples are bounded by number, never by time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

for name in ("access_suite", "ledger_suite", "authority_suite", "publish_suite", "publish_world"):
    pytest.register_assert_rewrite(f"suites.{name}")

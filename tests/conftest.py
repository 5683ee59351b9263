"""Puts this folder on the path: ``suites`` holds what unit and contract tests share."""

import pytest

for name in ("access_suite", "ledger_suite", "authority_suite", "publish_suite", "publish_world"):
    pytest.register_assert_rewrite(f"suites.{name}")

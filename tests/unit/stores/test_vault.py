"""The key ring on SQLite and the in-memory vault (the suites are shared with the contract tests)."""

import pytest
from suites.keyring_suite import KeyRingSuite
from suites.vault_suite import VaultSuite

from memory_pipelines.stores.fakes import MemoryVault


class TestMemoryVault(VaultSuite):
    @pytest.fixture
    def vault(self) -> MemoryVault:
        return MemoryVault()


class TestKeyRing(KeyRingSuite):
    pass

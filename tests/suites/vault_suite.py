"""What every vault promises. ``vault`` is a fixture of the inheriting module, fresh for each test."""

import pytest

from memory_pipelines.model import Owner
from memory_pipelines.stores.vault import TOKEN, Secret, Vault

ANN, BOB, TWIN = Owner("acme", "u:安"), Owner("acme", "u:bob"), Owner("rival", "u:安")
PHONE = "13812345678"
VALUES = (
    "",
    "13812345678",
    "密码 with 空格",
    "'; DROP TABLE sensitive_values; --",
    "\ud83d lone",
    "x" * 5000,
    "[phone]",
)


class VaultSuite:
    def test_the_same_value_of_one_owner_has_one_token(self, vault: Vault) -> None:
        secret = Secret(ANN, "phone", PHONE)
        first = vault.keep([secret])
        assert vault.keep([secret, secret, Secret(ANN, "code", "1")])[secret] == first[secret]
        assert TOKEN.fullmatch(first[secret])
        assert PHONE not in first[secret]

    def test_two_owners_share_no_token(self, vault: Vault) -> None:
        made = vault.keep([Secret(owner, "phone", PHONE) for owner in (ANN, BOB, TWIN)])
        assert len(set(made.values())) == 3

    def test_two_kinds_and_two_values_share_none(self, vault: Vault) -> None:
        secrets = [Secret(ANN, kind, value) for kind in ("phone", "password") for value in ("1", "2")]
        assert len({name.partition(":")[2] for name in vault.keep(secrets).values()}) == 4

    @pytest.mark.parametrize("value", VALUES)
    def test_any_value_comes_back(self, vault: Vault, value: str) -> None:
        [name] = vault.keep([Secret(ANN, "password", value)]).values()
        assert vault.reveal({ANN: {name}}) == {ANN: {name: value}}

    def test_a_token_is_its_owners_only(self, vault: Vault) -> None:
        made = vault.keep([Secret(ANN, "phone", PHONE), Secret(BOB, "phone", "2"), Secret(TWIN, "phone", "3")])
        anns = made[Secret(ANN, "phone", PHONE)]
        assert vault.reveal({BOB: {anns}, TWIN: {anns}}) == {BOB: {}, TWIN: {}}
        everything = set(made.values())
        assert vault.reveal({ANN: everything, BOB: everything}) == {
            ANN: {anns: PHONE},
            BOB: {made[Secret(BOB, "phone", "2")]: "2"},
        }

    def test_what_was_never_kept_is_left_out(self, vault: Vault) -> None:
        odd = {"[phone:abcdefghijkm]", "[phone]", "", "'; DROP TABLE subject_keys; --"}
        assert vault.reveal({ANN: odd}) == {ANN: {}}
        assert vault.reveal({ANN: set()}) == {ANN: {}}
        assert vault.reveal({}) == {}
        assert vault.keep([]) == {}

    def test_many_at_once(self, vault: Vault) -> None:
        secrets = [Secret(Owner("acme", f"u:{i % 700}"), "phone", f"{i}") for i in range(12_000)]
        made = vault.keep(secrets)
        assert len(set(made.values())) == 12_000
        wanted: dict[Owner, set[str]] = {}
        for secret, name in made.items():
            wanted.setdefault(secret.owner, set()).add(name)
        found = vault.reveal(wanted)
        assert {(o, v) for o, values in found.items() for v in values.values()} == {(s.owner, s.value) for s in secrets}

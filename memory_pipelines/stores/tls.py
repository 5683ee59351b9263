"""Whose certificates the stores' clients trust.

Belongs here: the authority's file, and how a refused certificate is recognised. Does not belong here: a driver.
"""

import os

from memory_pipelines.errors import SettingError

SETTING = "MEMORY_PIPELINES_CA_FILE"


def authority(ca_file: str) -> str:
    """The file that TLS clients take authorities from. Raises SettingError if it cannot be read."""
    if not os.access(ca_file, os.R_OK):
        raise SettingError(f"{SETTING} names no file that can be read")
    return ca_file


def mentioned(word: str, error: BaseException) -> bool:
    """Whether an error or one of its causes says a word: drivers wrap what a handshake failed for."""
    found: BaseException | None = error
    seen: set[int] = set()
    while found is not None and id(found) not in seen:  # gRPC's errors are causes of each other
        if word in str(found).lower():
            return True
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return False


def distrusted(store: str, error: BaseException) -> SettingError | None:
    """What to raise if a client refused the store's certificate, else None."""
    if not mentioned("certificate", error):
        return None
    return SettingError(f"the certificate of the {store} store is not trusted or not its own; check {SETTING}")

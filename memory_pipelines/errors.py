"""The error tree. Every failure is transient (worth a retry) or permanent (a retry cannot help).

Belongs here: exception types shared by more than one folder. Does not belong here: handling.
Messages name row ids, settings and stores, never text of a log: an exception's text lands in
orchestration event logs, which an erasure cannot reach.
"""


class MemoryPipelinesError(Exception):
    """Base of everything this library raises on purpose."""


class PermanentError(MemoryPipelinesError):
    """A retry cannot help: somebody has to change something first."""


class TransientError(MemoryPipelinesError):
    """The same call may work later."""


class SettingError(PermanentError):
    """A setting is missing or wrong; the message names the environment variable."""


class InputError(PermanentError):
    """A source cannot be read at all (missing file, unknown format)."""


class IntegrityError(PermanentError):
    """Stored data contradicts itself; stop before it spreads."""


class StoreUnavailableError(TransientError):
    """A store did not answer. ``store`` is the port's name, ``setting`` what to check."""

    def __init__(self, store: str, setting: str, detail: str) -> None:
        super().__init__(f"{store} does not answer ({detail}); check {setting}")
        self.store = store
        self.setting = setting

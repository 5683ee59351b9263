"""Devices and people around one person.

Belongs here: logins, a second user of the device, the group's rhythm, whose device is whose. Does
not belong here: what guests say (``group_talk``), the person's own life (``life``).
"""

from functools import partial

from memory_pipelines.sample.agenda import Agenda
from memory_pipelines.sample.config import DAY
from memory_pipelines.sample.emit import Log
from memory_pipelines.sample.group_talk import GroupTalk
from memory_pipelines.sample.rows import IDENTITY, stamp

GROUP_RATE = 0.08
"""Talks of a group per day."""


class Company:
    """Who else appears in one person's logs."""

    def __init__(self, log: Log, agenda: Agenda) -> None:
        self.log = log
        self.agenda = agenda
        self.group = GroupTalk(log)
        self.logins: list[tuple[str, str, int]] = []

    def plan(self) -> None:
        """Logins, the group's talks, the guest on the person's device."""
        person, begin = self.log.person, self.log.config.begin
        if begin < person.anonymous_until < self.log.config.end:
            self.agenda.plan(person.anonymous_until, partial(self._login, device=person.device_id))
        if person.second_device:
            self.agenda.plan(person.second_from, partial(self._login, device=person.second_device))
        if person.in_group:
            self.agenda.next(begin, GROUP_RATE, self._group)
        if person.shares_device:
            self.agenda.plan(self.agenda.awake(begin + int(10 * DAY * self.log.rng.random())), self._guest_login)

    def _login(self, at: int, device: str) -> None:
        self.log.behaviour(at, "login", device=device)
        self.logins.append((device, f"u:{self.log.person.user_id}", at))

    def _group(self, at: int) -> None:
        self.agenda.next(at, GROUP_RATE, self._group)
        if self.agenda.accepted(at, 1.0):
            self.group.talk(at)

    def _guest_login(self, at: int) -> None:
        guest, device = self.log.person.guests[0], self.log.person.device_id
        self.log.behaviour(at, "login", guest=guest, device=device)
        self.logins.append((device, f"u:{guest}", at))
        self.agenda.later(at, 1, 90, self._guest_visit)

    def _guest_visit(self, at: int) -> None:
        guest, device = self.log.person.guests[0], self.log.person.device_id
        dwell = round(20 + 200 * self.log.rng.random(), 1)
        self.log.behaviour(at, "visit", dwell=dwell, bounce=False, guest=guest, device=device)
        if self.log.rng.random() < 0.3:
            self.group.ask(at)
        self.agenda.later(at, 24, 24 * 14, self._guest_visit)

    def finish(self) -> None:
        """Write what is true of guests and devices."""
        self.group.finish()
        self._tell_devices()

    def _tell_devices(self) -> None:
        """Who uses which device, who has logged in there, and since when."""
        person, own = self.log.person, f"u:{self.log.person.user_id}"
        first = max(self.log.config.begin, person.anonymous_until)
        logins = {(person.device_id, own): first} if first < self.log.config.end else {}
        logins |= {(device, user): at for device, user, at in self.logins}
        for device in filter(None, (person.device_id, person.second_device)):
            users = {user: at for (where, user), at in logins.items() if where == device}
            self.log.truth(
                IDENTITY,
                {
                    "device": f"d:{device}",
                    "person": own,
                    "users": list(users),
                    "logged_in_at": [stamp(at) for at in users.values()],
                    "shared": len(users) > 1,
                },
            )

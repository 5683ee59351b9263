"""The two known persons of the README: ``u:zh-demo`` and ``u:en-demo`` of the first tenant.

Belongs here: their scripts. Does not belong here: anything that other persons share (``life``).

Times are shares of the simulated days, so that a shorter sample tells the same stories.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from memory_pipelines.sample.config import DAY, Config
from memory_pipelines.sample.life import Life
from memory_pipelines.sample.people import Calendar, Person, random_of
from memory_pipelines.sample.phrases import Phrases, load
from memory_pipelines.sample.rows import FORGET, REMEMBER, Line, Order, Record


@dataclass(frozen=True)
class Script:
    """One demo person. ``facts``: when (share of the time), predicate, value, what is said, what is answered."""

    name: str
    language: str
    offset_hours: int
    slots: dict[str, object]
    complaint: tuple[tuple[str, str], ...]
    cancels: bool
    praise: tuple[tuple[str, str], ...]
    facts: tuple[tuple[float, str, str, str, str], ...]


CHINESE = Script(
    name="zh-demo",
    language="zh",
    offset_hours=8,
    slots={"carrier": "顺丰", "warehouse": "深圳仓", "product": "儿童书包"},
    complaint=(
        ("user", "你好，我的订单{order}是顺丰从深圳仓发的，物流已经六天没更新了，儿童书包一直没送到"),
        ("agent", "非常抱歉，我帮您联系顺丰核实订单{order}。"),
        ("user", "开学就要用的，太让人失望了，再不送到我就取消订单"),
        ("agent", "目前没有新的进展，请您继续耐心等待。"),
    ),
    cancels=True,
    praise=(
        ("user", "这次的订单{order}送得很快，质量也很好，点赞"),
        ("agent", "感谢您的认可，我们会继续努力！"),
    ),
    facts=(
        (0.04, "home_city", "杭州", "我住在杭州，推荐的时候按这边来", "好的，记住了。"),
        (0.18, "allergy", "花生", "记住，我对花生过敏，选餐厅的时候一定要避开", "明白，以后会避开含花生的菜。"),
        (0.30, "food_preference", "清淡的菜", "我平时喜欢吃清淡的菜", "收到，会优先推荐清淡的。"),
        (0.62, "home_city", "上海", "我搬家了，现在住在上海，以后都按上海来", "好的，已更新为上海。"),
    ),
)

ENGLISH = Script(
    name="en-demo",
    language="en",
    offset_hours=-5,
    slots={"carrier": "FedEx", "warehouse": "the Dallas warehouse", "product": "espresso machine"},
    complaint=(
        (
            "user",
            "My order {order} shipped with FedEx from the Dallas warehouse, the espresso machine is six days late.",
        ),
        ("agent", "I am very sorry about this. Let me contact FedEx about order {order}."),
        ("user", "This delay is really disappointing, it was a birthday present."),
        ("agent", "There is no news at the moment, please keep waiting."),
    ),
    cancels=False,
    praise=(
        ("user", "Order {order} arrived quickly and the quality is great, thank you!"),
        ("agent", "So happy to hear that, enjoy!"),
    ),
    facts=(
        (0.04, "employer", "Larkspur Press", "I work at Larkspur Press.", "Got it."),
        (0.18, "seat_preference", "window seat", "I prefer a window seat when I fly.", "Noted: window seat."),
        (
            0.30,
            "pet",
            "a corgi",
            "We have a corgi at home, so pet-friendly hotels please.",
            "I will keep that in mind.",
        ),
        (0.62, "employer", "Bluepine Robotics", "I changed jobs, I am at Bluepine Robotics now.", "Congratulations!"),
    ),
)

COMPLAINT_AT, PRAISE_AT = 0.25, 0.75
COMPLAINT_EFFECT, PRAISE_EFFECT = 0.85, 0.15


class DemoLife(Life):
    """An ordinary rhythm of orders, visits and small talk, in which only the script's stories happen."""

    def __init__(self, config: Config, script: Script, phrases: Phrases, calendar: Calendar, rng: Random) -> None:
        person = Person(
            tenant=config.tenants[0],
            key=script.name,
            user_id=script.name,
            device_id=f"fp-{script.name}",
            language=script.language,
            offset_hours=script.offset_hours,
            wakes=7,
            order_rate=0.12,
            visit_rate=0.4,
            chat_rate=0.05,
            sensitivity=1.0,
            basket=80.0,
            assistant=False,
            anonymous_until=config.begin,
        )
        super().__init__(config, person, phrases, calendar, rng)
        self.script = script
        noon = config.begin + (12 - script.offset_hours) * 3600
        for share, predicate, value, said, answer in script.facts:
            step = partial(self._fact, predicate=predicate, value=value, said=said, answer=answer)
            self.agenda.plan(noon + int(share * (config.days - 1)) * DAY, step)
        self.agenda.plan(noon + int(COMPLAINT_AT * (config.days - 1)) * DAY, self._bad_order)
        self.agenda.plan(noon + int(PRAISE_AT * (config.days - 1)) * DAY, self._good_order)
        self.agenda.next(config.begin, person.chat_rate, self._chat)

    def _story(self, at: int, order: Order) -> None:
        """Other orders of a demo person lead to nothing."""

    def _fact(self, at: int, predicate: str, value: str, said: str, answer: str) -> None:
        lines = [Line("user", said, REMEMBER, predicate), Line("agent", answer), *self.talk.aside()]
        self.talk.hold(predicate, value, self.log.assistant(at, lines)[0])

    def _bad_order(self, at: int) -> None:
        order = self._buy(at)
        order.slots |= self.script.slots
        self.agenda.plan(at + 6 * DAY, partial(self._scripted_complaint, order=order))

    def _good_order(self, at: int) -> None:
        self.agenda.plan(at + 2 * DAY, partial(self._scripted_praise, order=self._buy(at)))

    def _scripted_complaint(self, at: int, order: Order) -> None:
        lines = self._lines(self.script.complaint, order, "logistics_complaint")
        lines.append(self._say("angry", order.slots, "user", FORGET, "closing"))
        self._happen("logistics_complaint", at, lines, order, COMPLAINT_EFFECT, "down", False)
        if self.script.cancels:
            self.agenda.plan(at + 6 * 3600, partial(self._cancel, order=order))

    def _scripted_praise(self, at: int, order: Order) -> None:
        lines = self._lines(self.script.praise, order, "praise")
        self._happen("praise", at, lines, order, PRAISE_EFFECT, "up", thanked=True)

    def _lines(self, script: tuple[tuple[str, str], ...], order: Order, kind: str) -> list[Line]:
        return [
            Line(role, text.format_map(order.slots), *((REMEMBER, kind) if role == "user" else ()))
            for role, text in script
        ]


def demo_records(config: Config) -> Iterator[Record]:
    """Logs and truth of both demo persons."""
    calendar = Calendar(config)
    for script in (CHINESE, ENGLISH):
        rng = random_of(config, config.tenants[0], script.name)
        yield from DemoLife(config, script, load(script.language, config.rich), calendar, rng).run()

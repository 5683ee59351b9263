"""All lives of a configuration as one stream.

Belongs here: the order of tenants and persons. Does not belong here: anything within a life.
"""

from collections.abc import Iterator

from memory_pipelines.sample.config import Config
from memory_pipelines.sample.demo import demo_records
from memory_pipelines.sample.life import Life
from memory_pipelines.sample.people import Calendar, draw, random_of
from memory_pipelines.sample.phrases import load
from memory_pipelines.sample.rows import Record


def simulate(config: Config) -> Iterator[Record]:
    """Logs and truth, one person after the other; only one life is in memory at a time.

    Each person has random numbers of their own, so more persons change nobody's life.
    """
    for _, records in lives(config):
        yield from records


def lives(config: Config) -> Iterator[tuple[str, list[Record]]]:
    """The tenant and all records of each life; a tenant's lives follow one another."""
    calendar = Calendar(config)
    if config.demo:
        yield config.tenants[0], list(demo_records(config))
    for position, tenant in enumerate(config.tenants):
        for number in range(config.persons_of(position)):
            rng = random_of(config, tenant, str(number))
            person = draw(config, tenant, number, rng)
            yield tenant, Life(config, person, load(person.language, config.rich), calendar, rng).run()

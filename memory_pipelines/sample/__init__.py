"""The simulator: bilingual dialogue and behaviour logs with known causes.

Belongs here: making logs, and the truth beside them (what each event did to later orders, which
facts hold, what should be remembered). Does not belong here: anything that the product reads back;
the truth is for tests and benchmarks alone.
"""

from memory_pipelines.sample.config import Config
from memory_pipelines.sample.rows import Record
from memory_pipelines.sample.simulator import simulate
from memory_pipelines.sample.write import Summary, write_sample

__all__ = ["Config", "Record", "Summary", "simulate", "write_sample"]

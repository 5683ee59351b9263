"""The thin online reader: ``Recall`` and what it answers.

Belongs here: everything between a query and a prompt. Does not belong here: training, jobs, writes
to the authority.
"""

from memory_pipelines.recall.answer import Answer, Explanation, Item, LegScore, Reasons
from memory_pipelines.recall.reader import Recall

__all__ = ["Answer", "Explanation", "Item", "LegScore", "Reasons", "Recall"]

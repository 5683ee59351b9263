"""The thin online module: ``Recall`` and what it answers, ``Session`` and what it notes.

Belongs here: everything between a query and a prompt, and what agents tell between two. Does not belong here:
training, jobs, writes of memories.
"""

from memory_pipelines.recall.answer import Answer, Explanation, Item, LegScore, Reasons
from memory_pipelines.recall.feedback import Feedback
from memory_pipelines.recall.reader import Recall
from memory_pipelines.recall.session import Noted, Session

__all__ = ["Answer", "Explanation", "Feedback", "Item", "LegScore", "Noted", "Reasons", "Recall", "Session"]

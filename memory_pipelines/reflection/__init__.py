"""Reflection: once a week, what a person's memories say together, and what to do about it.

Belongs here: insights with citations, by statistics or by a language model, and the checks that both pass.
Does not belong here: reading memories from a store, writing insights to one, or when a week is due.
"""

from memory_pipelines.reflection.llm import Writer, load_writer
from memory_pipelines.reflection.reflect import reflect
from memory_pipelines.reflection.schema import KINDS, Insight, Reflection, Task, to_table

__all__ = ["KINDS", "Insight", "Reflection", "Task", "Writer", "load_writer", "reflect", "to_table"]

"""What kind of answer a question wants.

Belongs here: reading the question's form. Does not belong here: what is done with it (``fusion``).
"""

import re

_GATHERS = re.compile(
    r"\b(?:what|which)\b(?: \w+){0,3} \w{3,}s\b (?:has|have|did|does|do|are|were|is)\b|\bhow many\b|\bwhat are\b"
    r"|哪些|几[个次位种]|多少[个次位种]|分别",
    re.IGNORECASE,
)


def gathers(query: str) -> bool:
    """Whether the answer is a list that lies in many places ("What books has Tim read?", 哪些), told by form alone."""
    return _GATHERS.search(query) is not None

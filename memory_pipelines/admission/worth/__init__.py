"""What a turn is worth by its words: of use after weeks, for days, or not at all.

Belongs here: the small model that judges text, its features and its training. Does not belong here: facts,
which rules find, or the decision, which weighs more than the text (``gate``).
"""

"""Step 4: what is named. ``find`` labels by all means beside it.

``dictionary``, ``rules`` and the name modules find; ``dates`` and ``said_dates`` read dates; ``lexical`` is the Chinese
word model, ``tagger`` a trained one (``tagger_features``, ``tagger_training``); ``vetoes`` take back what is no name.
"""

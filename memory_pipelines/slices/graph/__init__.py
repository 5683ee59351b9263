"""Step 7, the pure part: every subject's slice graph.

``edges`` draws it: ``nodes`` says what takes part, ``causes`` what led to what (``rules``: what may), ``links`` what
belongs together by rule, ``similar`` what is alike by the graph ``embedding``; ``picture`` shows one graph.
"""

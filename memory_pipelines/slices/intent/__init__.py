"""Step 2: what an exchange wants, and how that is learned.

``predict`` labels; ``features`` and ``vectors`` are what it sees; ``files`` holds its weights. Training is apart: rows
of users (``labelled``) and shipped ones (``examples``), ``fit``, ``training``, ``metrics``, ``plots``.
"""

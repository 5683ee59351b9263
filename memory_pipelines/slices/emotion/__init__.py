"""Step 3: how a person feels. ``score`` labels, by ``words`` or by a trained ``head``; ``training`` makes heads."""

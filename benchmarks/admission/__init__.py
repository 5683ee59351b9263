"""What the gate keeps, measured: ``python -m benchmarks.admission``. Belongs here: protocols and scores over
the gold set, the simulator and public dialogues. Does not belong here: the gate, or how it was tuned."""

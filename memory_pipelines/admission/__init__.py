"""Admission: what of an event slice deserves to be remembered, for how long, and in which store.

Belongs here: extraction of candidates, the three dimensions, the gate, facts with their validity
windows, routing; pure functions over Arrow tables. Does not belong here: reading or writing a
store, labels (``slices``), the life of a memory after it was admitted (``lifecycle``).
"""

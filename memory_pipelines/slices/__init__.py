"""The seven steps, one module each: clean (with exchanges), intent, emotion, entities, impact, merge, graph.

Belongs here: pure functions over Arrow tables, from landed turns to event slices and their edges.
Does not belong here: reading or writing a store, or any clock.
"""

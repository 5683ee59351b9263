"""The reward model: decision impact learned from what people did next.

Belongs here: features, labels, fitting, evaluation, the verdict on a challenger and its pictures, as pure functions
over Arrow tables. Does not belong here: where rows and models are kept (``stores``), when anything runs.
"""

"""The life of a memory once it was admitted: which tier its age and use deserve.

Does not belong here: admission, or the moving of bytes between stores (``stores.publish``).
"""

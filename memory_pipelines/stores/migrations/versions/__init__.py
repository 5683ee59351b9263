"""One revision a module; its name begins with ``v`` and the revision."""

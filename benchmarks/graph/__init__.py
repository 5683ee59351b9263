"""How good the slice graph is: cause and effect, links between evidence, size and speed."""

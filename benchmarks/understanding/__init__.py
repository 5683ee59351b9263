"""How well the models understand text: one module per model, each a command over a folder of labelled data."""

"""Benchmark of recall: does it find the turns that answer a question? No language model takes part."""

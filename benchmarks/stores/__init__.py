"""Benchmark of the stores: how fast they are filled, published to and read, embedded and real."""

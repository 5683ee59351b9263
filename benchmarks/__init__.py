"""Figures: how fast, how much memory, how good. Each is stated with unit, n, protocol and machine.

Belongs here: programs that measure the product as it is. Does not belong here: anything the product or a
test needs. Nothing is fetched: data sets are read from a folder that is named on the command line.
"""

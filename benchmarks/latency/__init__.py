"""Latency of a recall, from packs and through the stores."""

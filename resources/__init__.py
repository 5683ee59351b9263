"""Resources: the library's platform, built from settings for a run. No logic."""

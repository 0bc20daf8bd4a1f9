"""Experiments that fit many models: comparing, choosing the number of topics, and tuning settings."""

"""Fuzzing of everything that reads input of users: `make fuzz`, or `python -m tests.fuzz --help`."""

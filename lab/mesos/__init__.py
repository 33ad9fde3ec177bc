"""Mesos for tests: the real one in one process, and stand-ins that are packages."""

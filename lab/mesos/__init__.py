"""Mesos for tests: the real one in one process, and fakes that are packages."""

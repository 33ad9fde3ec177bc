"""Fakes of services that the project talks to and does not bring."""

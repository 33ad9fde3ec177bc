"""Fakes of the CernVM-FS client, which no distribution has."""

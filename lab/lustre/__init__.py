"""Fakes of Lustre, whose kernel modules the bench cannot load."""

"""Stand-ins for Lustre, whose kernel modules the bench cannot load."""

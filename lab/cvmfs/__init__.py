"""Stand-ins for the CernVM-FS client, which no distribution has."""

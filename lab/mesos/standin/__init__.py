"""Stand-ins for mesos-master and mesos-agent as Debian packages; ../README.md tells the sources."""

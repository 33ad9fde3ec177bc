"""Fakes of mesos-master and mesos-agent as Debian packages; ../README.md tells the sources."""

"""Which components are added to the package sources of a machine."""

from __future__ import annotations

from ansible_collections.gpufarm.cluster.plugins.filter.missing_components import missing_components

OWN = "/etc/apt/sources.list.d/own.sources"
WANTED = ["contrib", "non-free"]
# Output of apt-get indextargets on Debian 12.
STOCK = """\
http://deb.debian.org/debian/ bookworm main /etc/apt/sources.list.d/debian.sources:1
http://deb.debian.org/debian/ bookworm-updates main /etc/apt/sources.list.d/debian.sources:1
http://deb.debian.org/debian-security/ bookworm-security main /etc/apt/sources.list.d/debian.sources:2
""".splitlines()


def test_components_are_added_to_every_suite_from_its_own_mirror() -> None:
    found = missing_components(STOCK, WANTED, OWN)
    assert [(one["uri"], one["suite"], one["components"]) for one in found] == [
        ("http://deb.debian.org/debian-security/", "bookworm-security", ("contrib", "non-free")),
        ("http://deb.debian.org/debian/", "bookworm", ("contrib", "non-free")),
        ("http://deb.debian.org/debian/", "bookworm-updates", ("contrib", "non-free")),
    ]


def test_the_own_file_does_not_count_so_that_a_second_run_says_the_same() -> None:
    added = [f"http://deb.debian.org/debian/ bookworm {component} {OWN}:1" for component in WANTED]
    assert missing_components(STOCK + added, WANTED, OWN) == missing_components(STOCK, WANTED, OWN)


def test_what_a_machine_has_is_not_added_again() -> None:
    line = "http://deb.debian.org/debian/ bookworm contrib /etc/apt/sources.list:1"
    found = missing_components([line, STOCK[0]], WANTED, OWN)
    assert [one["components"] for one in found] == [("non-free",)]
    assert missing_components([line.replace("contrib", one) for one in WANTED], WANTED, OWN) == []

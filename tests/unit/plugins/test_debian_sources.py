"""Which components are added to the package sources of a machine."""

from __future__ import annotations

from ansible_collections.gpufarm.cluster.plugins.module_utils._apt.sources import missing_components

OWN = "/etc/apt/sources.list.d/own.sources"
WANTED = ["contrib", "non-free"]
# Output of apt-get indextargets on Debian 12.
STOCK = """\
http://deb.debian.org/debian/ bookworm main /etc/apt/sources.list.d/debian.sources:1
http://deb.debian.org/debian/ bookworm-updates main /etc/apt/sources.list.d/debian.sources:1
http://deb.debian.org/debian-security/ bookworm-security main /etc/apt/sources.list.d/debian.sources:2
""".splitlines()


def missing(lines: list[str]) -> list[list[str]]:
    """Return mirror, suite and components of each source that would be added."""
    text = missing_components(lines, WANTED, OWN, "/usr/share/keyrings/debian.gpg")
    sources = [
        dict(line.split(": ") for line in part.splitlines()) for part in text.strip().split("\n\n") if part
    ]
    assert all(source["Signed-By"] == "/usr/share/keyrings/debian.gpg" for source in sources)
    return [[source[name] for name in ("URIs", "Suites", "Components")] for source in sources]


def test_components_are_added_to_every_suite_from_its_own_mirror() -> None:
    assert missing(STOCK) == [
        ["http://deb.debian.org/debian-security/", "bookworm-security", "contrib non-free"],
        ["http://deb.debian.org/debian/", "bookworm", "contrib non-free"],
        ["http://deb.debian.org/debian/", "bookworm-updates", "contrib non-free"],
    ]


def test_the_own_file_does_not_count_so_that_a_second_run_says_the_same() -> None:
    added = [f"http://deb.debian.org/debian/ bookworm {component} {OWN}:1" for component in WANTED]
    assert missing(STOCK + added) == missing(STOCK)


def test_what_a_machine_has_is_not_added_again() -> None:
    line = "http://deb.debian.org/debian/ bookworm contrib /etc/apt/sources.list:1"
    assert missing([line, STOCK[0]]) == [["http://deb.debian.org/debian/", "bookworm", "non-free"]]
    assert missing([line.replace("contrib", one) for one in WANTED]) == []

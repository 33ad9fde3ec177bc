"""Homes are made at the first login, and nothing that is there is changed."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def log_in(host, name, command):
    return host.run(f"ssh -n -o BatchMode=yes {name}@127.0.0.1 %s", command)


def test_a_home_is_made_at_the_first_login_and_found_again(host):
    assert not host.file("/srv/home/ada").exists
    first = log_in(host, "ada", "pwd; cmp .profile /etc/skel/.profile && echo mine > thesis")
    assert (first.rc, first.stdout) == (0, "/srv/home/ada\n"), first
    home = host.file("/srv/home/ada")
    assert (home.user, home.group, oct(home.mode)) == ("ada", "ada", "0o700")
    assert log_in(host, "ada", "cat thesis").stdout == "mine\n"


def test_a_home_of_somebody_else_is_refused_and_kept(host):
    done = log_in(host, "carol", "true")
    assert done.rc != 0
    assert "/srv/home/carol belongs to the user id 4711, and carol has 1503" in done.stdout + done.stderr
    assert host.check_output("stat --format %u /srv/home/carol/results") == "4711"


def test_a_link_in_place_of_a_home_is_refused_and_not_followed(host):
    host.check_output("ln -s /srv/full /srv/home/dora")
    done = log_in(host, "dora", "true")
    assert done.rc != 0 and "/srv/home/dora is a symbolic link" in done.stdout + done.stderr
    assert host.check_output("stat --format %U /srv/full /srv/full/results").split() == ["root", "root"]


def test_new_accounts_have_their_homes_there(host):
    host.check_output("useradd --key HOME_MODE=0700 erin")
    assert host.user("erin").home == "/srv/home/erin"
    assert host.run("gpufarm-home erin").rc == 0
    assert host.file("/srv/home/erin").user == "erin"


def test_a_home_that_is_there_keeps_its_mode_and_what_is_in_it(host):
    host.check_output("chmod 750 /srv/home/ada && rm /srv/home/ada/.profile")
    assert log_in(host, "ada", "cat thesis").stdout == "mine\n"
    assert oct(host.file("/srv/home/ada").mode) == "0o750"
    assert not host.file("/srv/home/ada/.profile").exists


def test_a_user_cannot_read_the_home_of_another(host):
    log_in(host, "bob", "true")
    assert "Permission denied" in log_in(host, "bob", "ls /srv/home/ada").stderr


def test_a_service_from_before_the_mount_sees_the_homes(host):
    process = host.check_output("systemctl show --property MainPID --value early")
    seen = host.check_output("nsenter --target %s --mount cat /srv/home/ada/thesis", process)
    assert seen == "mine"


def test_who_has_no_home_there_is_left_alone(host):
    assert host.run("gpufarm-home root").rc == 0
    assert host.run("gpufarm-home nobody-of-this-name").rc == 1


def test_the_mount_has_the_options_and_comes_back_with_the_machine(host):
    options = host.check_output("findmnt --noheadings --output OPTIONS /srv/home").split(",")
    assert {"rw", "nosuid", "nodev", "noatime"} <= set(options)
    assert host.service("srv-home.mount").is_enabled


def test_the_files_of_others_are_found_again(host):
    assert host.check_output("planted") == ""

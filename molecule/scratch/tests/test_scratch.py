"""Areas are their users' alone, live as long as they shall, and nobody leads the removal elsewhere."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

USERS = "/scratch/areas/users"
JOBS = "/scratch/areas/jobs"
CLEAN = "systemd-tmpfiles --clean /etc/tmpfiles.d/gpufarm-scratch.conf"


@pytest.fixture
def slurm(host):
    if host.check_output("hostname") != "scratch13":
        pytest.skip("no Slurm here")
    return host


def gone(host, area: str) -> None:
    """Wait until the area of a job is removed, with what was put aside."""
    host.check_output(
        f"timeout 60 sh -c 'while [ -e {area} ] || ls {JOBS}/.gone-* >/dev/null 2>&1; do sleep 0.2; done'"
    )


def login(host, name: str) -> str:
    """Output of a shell at the login of a user, with the session that PAM opens."""
    return host.check_output(
        f"su --login {name} --command 'bash --login -i -c \"echo \\$SCRATCH\"' 2>/dev/null"
    )


def test_a_user_gets_an_area_at_a_login_that_nobody_else_can_read(host):
    for name in ("ada", "ben"):
        assert login(host, name).splitlines()[-1] == f"{USERS}/{name}"
        area = host.file(f"{USERS}/{name}")
        assert (area.user, area.mode) == (name, 0o700)
    host.check_output(f"runuser -u ada -- touch {USERS}/ada/mine")
    assert host.run(f"runuser -u ben -- ls {USERS}/ada").rc != 0
    assert host.run(f"runuser -u ada -- touch {USERS}/other").rc != 0
    assert f"{USERS}/ada: files stay for 30 days" in host.check_output("runuser -u ada -- gpufarm-scratch")


def test_logouts_ask_for_nothing(host):
    login(host, "ada")
    assert "type=open_session" in host.check_output("grep gpufarm-scratch /etc/pam.d/common-session")


def test_root_gets_no_area(host):
    assert host.run("su --login root --command true").rc == 0
    assert not host.file(f"{USERS}/root").exists


def test_a_job_has_an_area_of_its_own_that_goes_with_it(slurm):
    script = "echo $JOB_SCRATCH $SCRATCH; cd $JOB_SCRATCH; echo data >file; stat -c '%U %a' .; ls"
    said = slurm.check_output("cd / && runuser -u ada -- srun sh -c %s", script).splitlines()
    area, own = said[0].split()
    assert area.startswith(f"{JOBS}/") and own == f"{USERS}/ada"
    assert said[1:] == ["ada 700", "file"]
    gone(slurm, area)


def test_the_area_of_somebody_else_stays_and_is_given_to_nobody(slurm):
    # As after the numbers of jobs have begun anew.
    last = int(slurm.check_output("cd / && runuser -u ada -- srun sh -c 'echo $SLURM_JOB_ID'"))
    theirs = " ".join(f"{JOBS}/gpufarm-{last + number}" for number in (1, 2))
    slurm.check_output(
        f"install -d -o ben -m 0700 {theirs} && runuser -u ben -- touch {JOBS}/gpufarm-{last + 1}/file"
    )
    said = slurm.check_output("cd / && runuser -u ada -- srun sh -c 'echo works; echo $JOB_SCRATCH'")
    assert "works" in said.splitlines() and "has no area" in said
    slurm.check_output(
        "timeout 60 sh -c 'until [ \"$(sinfo --noheader --format=%t)\" = idle ]; do sleep 0.2; done'"
    )
    assert slurm.file(f"{JOBS}/gpufarm-{last + 1}/file").exists
    slurm.check_output(f"rm -r {theirs}")


def test_links_in_the_area_of_a_job_lead_the_removal_nowhere(slurm):
    slurm.check_output("install -d -o ada /srv/precious && install -o ada /dev/null /srv/precious/file")
    script = "cd $JOB_SCRATCH; ln -s /srv/precious link; mkdir a; ln -s /srv/precious/file a/b; pwd"
    area = slurm.check_output("cd / && runuser -u ada -- srun sh -c %s", script)
    gone(slurm, area)
    assert slurm.file("/srv/precious/file").exists
    slurm.check_output("rm -r /srv/precious")


def test_a_job_starts_without_an_area_if_the_file_system_is_away(slurm):
    slurm.check_output(
        "mount --bind /srv /scratch/areas/jobs && mount -o remount,bind,ro /scratch/areas/jobs"
    )
    try:
        said = slurm.check_output("cd / && runuser -u ada -- srun sh -c 'echo works; echo $JOB_SCRATCH'")
    finally:
        slurm.check_output("umount /scratch/areas/jobs")
    assert "works" in said.splitlines() and "has no area in /scratch/areas" in said
    assert "Read-only file system" in slurm.check_output("journalctl --identifier=gpufarm-scratch --lines=1")
    # A node that Slurm had drained would never be idle again.
    slurm.check_output(
        "timeout 60 sh -c 'until [ \"$(sinfo --noheader --format=%t)\" = idle ]; do sleep 0.2; done'"
    )


def test_old_files_are_told_and_then_removed_and_links_are_not_followed(host):
    login(host, "ada")
    host.check_output("install -d -o ada /srv/kept && install -o ada /dev/null /srv/kept/file")
    files = "echo 1 >old && echo 2 >young && ln -s /srv/kept link && mkdir deep"
    host.check_output(f"cd {USERS}/ada && runuser -u ada -- sh -c '{files}'")
    host.check_output(f"runuser -u ada -- sh -c 'printf x >{USERS}/ada/deep/$(printf \"a\\033[2Jb\")'")
    # No file can be made old, as the kernel sets the time of its change; so the rules are for seconds here.
    host.check_output("sed 's/30d/2s/' /etc/tmpfiles.d/gpufarm-scratch.conf >/run/young.conf")
    settings = "/etc/gpufarm/scratch.json"
    host.check_output(f'cp {settings} /run/kept.json && sed -i \'s/"days": 30/"days": 7/\' {settings}')
    try:
        host.check_output("systemctl start gpufarm-scratch-warn.service")
        assert "files with" in login(host, "ada") and "gpufarm-scratch ageing" in login(host, "ada")
        assert "files with" not in login(host, "ben")
        ageing = host.check_output("runuser -u ada -- gpufarm-scratch ageing")
        assert f"{USERS}/ada/old" in ageing and "\\x1b[2J" in ageing and "\x1b" not in ageing
        assert host.run("runuser -u ben -- cat /scratch/areas/warnings/ada").rc != 0
    finally:
        host.check_output(f"cp /run/kept.json {settings}")
    host.check_output(f"sleep 3 && runuser -u ada -- touch {USERS}/ada/young")
    host.check_output("systemd-tmpfiles --clean /run/young.conf")
    assert host.check_output(f"ls {USERS}/ada") == "young"
    assert host.file("/srv/kept/file").exists and host.file(f"{USERS}/ben").exists
    host.check_output("systemctl start gpufarm-scratch-warn.service")
    assert not host.file("/scratch/areas/warnings/ada").exists
    host.check_output("rm -r /srv/kept")


def test_files_that_are_used_stay(host):
    login(host, "ada")
    host.check_output(f"runuser -u ada -- touch {USERS}/ada/fresh")
    host.check_output(CLEAN)
    assert host.file(f"{USERS}/ada/fresh").exists


def test_a_login_works_while_the_file_system_is_away(host):
    host.check_output(
        "mount --bind /srv /scratch/areas/users && mount -o remount,bind,ro /scratch/areas/users"
    )
    try:
        assert login(host, "ben").splitlines()[-1] == f"{USERS}/ben"
    finally:
        host.check_output("umount /scratch/areas/users")

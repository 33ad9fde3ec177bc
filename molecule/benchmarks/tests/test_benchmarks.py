"""The results are kept, and nothing that measured is left."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

RESULTS = "/var/lib/gpufarm/benchmarks/results.json"


def test_the_results_are_there_for_everybody(host):
    kept = json.loads(host.check_output(f"runuser -u nobody cat {RESULTS}"))
    assert kept["values"] == kept["baseline"] and kept["values"].keys() == kept["measured"].keys()
    assert kept["values"]["/var/tmp.creations_s"] > 1
    # STREAM is of all cores, and this machine has more than one.
    assert kept["values"]["memory_gb_s"] > 0.2 * kept["values"]["one_core_memory_gb_s"]


def test_the_links_of_the_ring_were_measured(host):
    values = json.loads(host.file(RESULTS).content_string)["values"]
    assert len([name for name in values if name.startswith("link.")]) == 2
    # Open MPI is another on the machine `old`.
    told = [name for name in values if name.startswith("mpi.")]
    assert len(told) == (2 if host.check_output("hostname") in ("one", "two") else 0)


def test_the_gpus_and_the_links_between_them_were_measured(host):
    values = json.loads(host.file(RESULTS).content_string)["values"]
    found = {name for name in values if name.startswith("gpu.")}
    names = ("fp32_tflops", "memory_gb_s", "to_gpu_gb_s", "from_gpu_gb_s")
    expected = {f"gpu.{gpu}.{name}" for gpu in (0, 1) for name in names}
    expected |= {"gpu.0.to.1.gb_s", "gpu.1.to.0.gb_s"}
    assert found == (expected if host.check_output("hostname") == "one" else set())


def test_nothing_serves_and_no_file_is_left(host):
    units = ["gpufarm-link*", "gpufarm-mpi*"]
    assert not host.check_output("systemctl list-units --all --plain --no-legend %s %s", *units)
    assert host.run("pgrep -x 'iperf3|hpcc|fio|prted|prterun'").rc == 1
    assert not host.check_output("find /run -maxdepth 1 -name 'gpufarm-mpi*'")
    assert not host.check_output("find /var/tmp -name '*gpufarm-benchmark*'")

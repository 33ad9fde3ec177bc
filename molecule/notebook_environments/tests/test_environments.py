"""People plot, train a network, and add packages of their own, which nobody else sees."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

PLOT = """
import matplotlib, numpy, pandas
matplotlib.use("agg")
import matplotlib.pyplot as plot
data = pandas.DataFrame({"x": numpy.arange(10)})
data["y"] = data.x**2
data.plot("x", "y").figure.savefig("plot.png")
print(int(data.y.sum()))
"""
# A network with one hidden layer learns to read 8 x 8 pictures of digits, which scikit-learn brings along.
TRAIN = """
import jax, jax.numpy as jnp
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
x, y = load_digits(return_X_y=True)
x, x_test, y, y_test = train_test_split(x / 16, y, random_state=0)
one, two = jax.random.split(jax.random.key(0))
layers = [jax.random.normal(one, (64, 32)) * 0.1, jax.random.normal(two, (32, 10)) * 0.1]
guess = lambda layers, x: jnp.tanh(x @ layers[0]) @ layers[1]
loss = lambda layers: -jnp.mean(jax.nn.log_softmax(guess(layers, x))[jnp.arange(len(y)), y])
step = jax.jit(lambda layers: [w - 1.0 * g for w, g in zip(layers, jax.grad(loss)(layers))])
for _ in range(300):
    layers = step(layers)
print("accuracy", float(jnp.mean(guess(layers, x_test).argmax(1) == y_test)))
"""
HAS = "import importlib.util as u; print(u.find_spec('humanize') is not None)"


def test_a_user_plots(host, cell):
    done = cell("ada", PLOT)
    assert done.rc == 0, done.stdout + done.stderr
    assert done.stdout.strip() == "285"
    assert host.file("/home/ada/plot.png").size > 1000


def test_a_user_trains_a_network(cell):
    done = cell("ada", TRAIN, "training")
    assert done.rc == 0, done.stdout + done.stderr
    assert float(done.stdout.split()[-1]) > 0.9


def test_a_mounted_tree_is_a_kernel(host, cell):
    done = cell("ada", "import os, sys; print(os.environ['TREE'], sys.executable)", "tree")
    assert done.rc == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["one0", "/srv/tree/bin/python"]


def test_a_package_of_a_user_is_there_in_the_next_kernel_and_nobody_else_has_it(cell):
    assert cell("ada", HAS).stdout.strip() == "False"
    done = cell("ada", "%pip install --quiet humanize")
    assert done.rc == 0, done.stdout + done.stderr
    assert cell("ada", HAS).stdout.strip() == "True"
    assert cell("ben", HAS).stdout.strip() == "False"
    assert "humanize" in cell("ada", "!gpufarm-environment list").stdout


def test_a_shell_in_a_cell_installs_too(cell):
    done = cell("ben", "!pip install --quiet tinydb; python -c 'import tinydb; print(tinydb.__name__)'")
    assert done.stdout.strip().endswith("tinydb"), done.stdout + done.stderr


def test_nobody_writes_to_the_shared_environment(host, cell):
    done = cell("ada", "import numpy, os; print(os.access(os.path.dirname(numpy.__file__), os.W_OK))")
    assert done.stdout.strip() == "False"
    assert host.check_output("find /opt/gpufarm/environments ! -type l -perm /022") == ""


def test_a_package_of_a_user_cannot_take_the_kernel_s_place(cell):
    done = cell("ben", "%pip install --quiet 'ipykernel<6'")
    assert "conflict" in (done.stdout + done.stderr).lower()


def test_a_kernel_starts_without_a_broken_package_and_says_so(host, cell, notice):
    layer = host.check_output(
        "echo /home/ben/.local/share/gpufarm/environments/scientific/*/lib/python3*/site-packages"
    )
    broken = f"mkdir {layer}/zmq && echo 'import missing' > {layer}/zmq/__init__.py"
    host.check_output("runuser --user ben -- sh -c %s", broken)
    assert cell("ben", "print(6 * 7)").rc != 0
    assert cell("ben", "print(6 * 7)").rc != 0
    assert cell("ben", "print(6 * 7)").stdout.strip() == "42"
    assert "as it did not start with them the last times" in notice("ben")
    host.check_output("runuser --user ben -- rm -r %s/zmq", layer)
    assert cell("ben", "!gpufarm-environment reset").rc == 0
    assert cell("ben", "print(6 * 7)").stdout.strip() == "42"
    assert notice("ben") == ""


def test_a_kernel_starts_in_a_home_that_is_full_and_says_so(host, cell, notice):
    assert host.run("runuser --user carl -- dd if=/dev/zero of=/home/carl/data bs=64k").rc == 1
    done = cell("carl", "import numpy; print(numpy.arange(3).sum())")
    assert done.stdout.strip() == "3", done.stdout + done.stderr
    assert "as your home is full" in notice("carl")
    host.check_output("rm /home/carl/data")


def test_the_hub_is_told_whose_they_are(host):
    told = json.loads(host.file("/etc/gpufarm/environments.json").content_string)["environments"]
    assert [(one["name"], one["title"], one["groups"]) for one in told] == [
        ("scientific", "Scientific Python", []),
        ("training", "Neural networks", ["course"]),
        ("tree", "Software tree", []),
    ]
    assert host.file("/etc/gpufarm/environments.json").mode == 0o644

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# mypy: ignore-errors
# Python 2.7, started by lab.mesos.real: a framework that wants nothing, whose driver starts master and
# agents.

import os
import signal
import site

folder = os.environ.pop("LAB_MESOS_SITE")
site.addsitedir(folder)
import mesos  # noqa: E402

# pip and the egg bring a part of this package each
mesos.__path__.extend(folder + "/" + name + "/mesos" for name in os.listdir(folder) if name.endswith(".egg"))  # noqa: PTH208
from mesos.interface import Scheduler, mesos_pb2  # noqa: E402
from mesos.scheduler import MesosSchedulerDriver  # noqa: E402


class Nothing(Scheduler):
    def registered(self, driver, framework_id, master_info):
        driver.suppressOffers()

    def resourceOffers(self, driver, offers):
        for offer in offers:
            driver.declineOffer(offer.id)

    def error(self, driver, message):
        print("the framework that wants nothing is refused: " + message)


framework = mesos_pb2.FrameworkInfo()
framework.user = framework.name = "nobody"
signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
driver = MesosSchedulerDriver(Nothing(), framework, "local")
driver.start()
while True:
    signal.pause()

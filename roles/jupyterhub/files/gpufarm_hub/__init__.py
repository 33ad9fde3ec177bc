# SPDX-License-Identifier: GPL-3.0-or-later
"""What the gpufarm role adds to JupyterHub: leases of GPU slices, accounts, login rules."""

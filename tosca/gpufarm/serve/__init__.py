# SPDX-License-Identifier: GPL-3.0-or-later
"""The REST interface of INDIGO's PaaS Orchestrator over the deployer. docs/serve.md is its manual."""

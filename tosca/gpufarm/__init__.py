"""The deployer: sets up TOSCA service templates on machines that exist, with one Ansible process per run.

SPDX-License-Identifier: GPL-3.0-or-later
"""

# SPDX-License-Identifier: GPL-3.0-or-later
"""The hub's own part: GPU slices with leases for notebooks of every engine.

`configuration` puts it together: `people` are the users, `sharing` hands slices out and takes them back,
`spawning` starts notebooks, `web` shows it all, `upkeep` is what units and administrators run beside the hub.
"""

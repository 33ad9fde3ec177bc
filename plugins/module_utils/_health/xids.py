# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Meanings of XID errors of NVIDIA's driver, as data: number, remedy, name.

Source: NVIDIA's XID catalogue (docs.nvidia.com/deploy/xid-errors, "Xid Catalog", column Immediate Action),
codes in use as of 2025-10; names without their common beginning ROBUST_CHANNEL. Codes from 162 on carry no
action there: as GPUd (github.com/leptonai/gpud, xid catalogue) grades them, events are to be ignored and
warnings to be looked into.

    ignore       nothing is wrong with the GPU
    restart      the program that met it has to be started again; the GPU is fine
    investigate  it is for the administrator to find out
    recovery     the driver changed the GPU's recovery action, which a check of its own reads
    nvlink       an error of NVLink 5, whose message says whether it is fatal
    reset        the GPU has to be reset
    reboot       the machine has to be rebooted
    inspect      the hardware has to be looked at (power connectors)
"""

from __future__ import annotations

TABLE = """
8 restart FIFO_ERROR_IDLE_TIMEOUT
11 restart GR_ERROR_MISSING_HW
13 restart GR_EXCEPTION
25 restart GR_ILLEGAL_NOTIFY
31 restart FIFO_ERROR_MMU_ERR_FLT
32 restart PBDMA_ERROR
37 ignore FECS_ERR_UNIMP_FIRMWARE_METHOD
38 ignore FECS_ERR_WATCHDOG_TIMEOUT
39 restart CE0_ERROR
40 restart CE1_ERROR
41 restart CE2_ERROR
43 ignore RESETCHANNEL_VERIF_ERROR
44 ignore GR_FAULT_DURING_CTXSW
45 restart PREEMPTIVE_REMOVAL
46 reset GPU_TIMEOUT_ERROR
48 reset GPU_ECC_DBE
54 inspect SILENT_RUNNING_PWR_REDUCED_CLOCKING
60 restart SEC2_ERROR
62 reset PMU_HALT_ERROR
63 ignore INFOROM_DRAM_RETIREMENT_EVENT
64 reset INFOROM_DRAM_RETIREMENT_FAILURE
66 ignore FECS_ERR_REG_ACCESS_VIOLATION
67 ignore FECS_ERR_VERIF_VIOLATION
68 restart NVDEC0_ERROR
69 restart GR_CLASS_ERROR
70 restart CE3_ERROR
71 restart CE4_ERROR
72 restart CE5_ERROR
74 reset NVLINK_ERROR
75 restart CE6_ERROR
76 restart CE7_ERROR
77 restart CE8_ERROR
78 investigate VGPU_START_ERROR
79 reboot GPU_HAS_FALLEN_OFF_THE_BUS
80 restart PBDMA_PUSHBUFFER_CRC_MISMATCH
82 restart NVJPG0_ERROR
83 restart NVDEC1_ERROR
84 restart NVDEC2_ERROR
85 restart CE9_ERROR
86 restart OFA0_ERROR
88 restart NVDEC3_ERROR
89 restart NVDEC4_ERROR
92 ignore EXCESSIVE_SBE_INTERRUPTS
93 ignore INFOROM_ERASE_LIMIT_EXCEEDED
94 restart CONTAINED_ERROR
95 reset UNCONTAINED_ERROR
96 restart NVDEC5_ERROR
97 restart NVDEC6_ERROR
98 restart NVDEC7_ERROR
99 restart NVJPG1_ERROR
100 restart NVJPG2_ERROR
101 restart NVJPG3_ERROR
102 restart NVJPG4_ERROR
103 restart NVJPG5_ERROR
104 restart NVJPG6_ERROR
105 restart NVJPG7_ERROR
106 ignore SMBPBI_TEST_MESSAGE
107 ignore SMBPBI_TEST_MESSAGE_SILENT
109 reset CTXSW_TIMEOUT_ERROR
110 reset SEC_FAULT_ERROR
119 reset GSP_RPC_TIMEOUT
120 reset GSP_ERROR
121 ignore C2C_ERROR
126 restart CE10_ERROR
127 restart CE11_ERROR
128 restart CE12_ERROR
129 restart CE13_ERROR
130 restart CE14_ERROR
131 restart CE15_ERROR
132 restart CE16_ERROR
133 restart CE17_ERROR
134 restart CE18_ERROR
135 restart CE19_ERROR
136 reset ALI_TRAINING_FAIL
137 ignore NVLINK_PRIV_ERR
139 restart OFA1_ERROR
140 reset UNRECOVERABLE_ECC_ERROR_ESCAPE
141 ignore FAST_PATH_ERROR
142 investigate NVENC3_ERROR
143 reset GPU_INIT_ERROR
144 nvlink NVLINK_SAW_ERROR
145 nvlink NVLINK_RLW_ERROR
146 nvlink NVLINK_TLW_ERROR
147 nvlink NVLINK_TREX_ERROR
148 nvlink NVLINK_NVLPW_CTRL_ERROR
149 nvlink NVLINK_NETIR_ERROR
150 nvlink NVLINK_MSE_ERROR
151 reboot KEY_ROTATION_ERROR
152 ignore DLA_SMMU_ERROR
153 ignore DLA_TIMEOUT
154 recovery GPU_RECOVERY_ACTION_CHANGED
155 reset NVLINK_SW_DEFINED_ERROR
156 reset RESOURCE_RETIREMENT_EVENT
157 ignore RESOURCE_RETIREMENT_FAILURE
158 reset GPU_FATAL_TIMEOUT
159 investigate CHI_NON_DATA_ERROR
160 ignore CHANNEL_RETIREMENT_EVENT
161 ignore CHANNEL_RETIREMENT_FAILURE
162 ignore PSHC_REENGAGED
163 investigate PSHC_DISENGAGED
164 ignore PSHC_LOW_LIFETIME
165 ignore PSHC_ZERO_LIFETIME
166 investigate NVLINK_SECURE_CRYPTO_ERR
167 investigate PCIE_FATAL_TIMEOUT
168 investigate REDUCED_GPU_MEMORY_CAPACITY
169 investigate SEC2_HALT_ERROR
170 investigate NVLINK_SECURE_OTHER
171 investigate UNCORRECTABLE_DRAM_ERROR
172 investigate UNCORRECTABLE_SRAM_ERROR
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HPC Challenge benchmark on one machine: its input, and what it has measured. No I/O.

Source of the names: HPC Challenge 1.5, README.txt, "Summary section" of hpccoutf.txt; of the input: "TUNING".
"""

from __future__ import annotations

import math
import re

# Columns of a block of the matrix that processors with vector units do well with (HPL, "FAQs").
BLOCK = 192
BYTES = 8  # of a number in double precision

_INPUT = """\
HPLinpack benchmark input file
gpufarm.cluster
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{size}       Ns
1            # of NBs
{block}      NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{rows}       Ps
{columns}    Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
----
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
"""


def size(memory_mib: int) -> int:
    """Return the rows of a square matrix of whole blocks that fits into so much memory; one block or more."""
    return max(math.isqrt(memory_mib * 2**20 // BYTES) // BLOCK, 1) * BLOCK


def grid(processes: int) -> tuple[int, int]:
    """Return rows and columns of processes, as near to a square as their number allows, with fewer rows."""
    rows = max(number for number in range(1, math.isqrt(processes) + 1) if processes % number == 0)
    return rows, processes // rows


def input_file(processes: int, memory_mib: int) -> str:
    """Return the content of hpccinf.txt.

    Args:
        processes: how many run.
        memory_mib: of the matrix, in all.
    """
    rows, columns = grid(processes)
    return _INPUT.format(size=size(memory_mib), block=BLOCK, rows=rows, columns=columns)


def values(output: str) -> dict[str, float]:
    """Return what was measured; more is better.

    Args:
        output: content of hpccoutf.txt.

    Raises:
        ValueError: the benchmark did not succeed, or a part of it computed wrongly.
    """
    summary = output.partition("Begin of Summary section.")[2].partition("End of Summary section.")[0]
    told = dict(re.findall(r"^(\w+)=(\S+)$", summary, re.MULTILINE))
    if told.get("Success") != "1":
        raise ValueError("a part of it failed, or computed wrongly")
    try:
        processes = int(told["CommWorldProcs"])
        return {
            "hpl_gflops": float(told["HPL_Tflops"]) * 1000,
            "dgemm_gflops": float(told["StarDGEMM_Gflops"]) * processes,
            "fft_gflops": float(told["MPIFFT_Gflops"]),
            "memory_gb_s": float(told["StarSTREAM_Triad"]) * processes,
            "one_core_memory_gb_s": float(told["SingleSTREAM_Triad"]),
            "random_access_gups": float(told["MPIRandomAccess_GUPs"]),
        }
    except KeyError as error:
        raise ValueError(f"its summary has no {error.args[0]}") from error

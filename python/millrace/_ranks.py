"""Which process of how many this is, as torch.distributed or launchers tell it."""
from __future__ import annotations

import os
import sys
from typing import Mapping, Optional, Tuple

from ._errors import ArgumentError

# rank, world, processes on this machine; the first pair that is there counts
_TOLD = [("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),  # torchrun
         ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
         ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "")]  # of a step only: a batch script by itself is no rank


def _number(environment: Mapping[str, str], name: str) -> Optional[int]:
    text = environment.get(name, "")
    if not text:
        return None
    if not text.isdigit():
        raise ArgumentError("the environment has %s=%s: expected a number; give rank= and world= yourself" % (name, text))
    return int(text)


def of_group() -> Optional[Tuple[int, int]]:
    """(rank, world) of torch.distributed's default group, where the program has made one; PyTorch is not imported for it."""
    group = sys.modules.get("torch.distributed")
    if group is None or not group.is_available() or not group.is_initialized():
        return None
    return group.get_rank(), group.get_world_size()


def find(rank: Optional[int], world: Optional[int], environment: Mapping[str, str] = os.environ) -> Tuple[int, int]:
    """(rank, world): the arguments, else of torch.distributed's group, else of the launcher, else (0, 1)."""
    if (rank is None) != (world is None):
        raise ArgumentError("rank= and world= go together: give both, or neither for what torchrun, mpirun or srun say")
    if rank is None or world is None:
        group = of_group()
        rank, world = group or (0, 1)
        for rank_name, world_name, _ in _TOLD if group is None else ():
            r, w = _number(environment, rank_name), _number(environment, world_name)
            if r is not None and w is not None:
                rank, world = r, w
                break
    if not 0 <= rank < world:
        raise ArgumentError("rank %d of %d: expected 0 <= rank < world" % (rank, world))
    return rank, world


def beside(environment: Mapping[str, str] = os.environ) -> int:
    """Processes of this job on this machine, for sharing its cores; 1 where nobody says."""
    for rank_name, _, local_name in _TOLD:
        n = _number(environment, local_name) if local_name and environment.get(rank_name) else None
        if n:
            return n
    return 1

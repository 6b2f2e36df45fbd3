"""Groups of pods, and where they may be placed."""

from __future__ import annotations

import dataclasses
from typing import Any, List, Sequence, Tuple


@dataclasses.dataclass(frozen=True)
class Group:
    """Pods that are placed together or not at all, as far as they wait for nodes."""

    name: str  # for people
    namespace: str
    pods: Sequence[Any]  # that wait for a node; the attempt's pod first
    needed: int  # how many of them have to get a node
    placed: Sequence[Any]  # nodes of pods of the group that have one; a node may occur several times


@dataclasses.dataclass(frozen=True)
class Placement:
    """A set of nodes that could hold a group. `name` is unique in an answer, and for people: rack-7."""

    name: str
    nodes: Sequence[Any]


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A placement that the group fits into, and the node that each pod would have."""

    name: str
    nodes: Sequence[Any]
    places: List[Tuple[Any, Any]]  # pod and node; at least `needed`


@dataclasses.dataclass(frozen=True)
class Excluded:
    """In place of a score: the placement must not be used."""

    reason: str

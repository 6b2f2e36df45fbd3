"""The nodes of a call in columns, for plugins that compute over all of them at once."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

Value = TypeVar("Value")

# Names of ResourceList's fields for resources that have one of their own.
FIELDS = {"cpu": "cpu_millis", "memory": "memory_bytes", "ephemeral-storage": "ephemeral_storage_bytes", "pods": "pods"}
NOT_NAMED = -1
# Parts of nodes that do not come in columns (node_columns.proto).
NOT_IN_COLUMNS = frozenset(
    (
        "Node.pods",
        "Node.status.images",
        "Node.status.declaredFeatures",
        "Node.status.capacity",
        "Node.status.conditions",
        "Node.status.addresses",
    )
)


class Dictionary:
    """A value for each node, each distinct value once. Read-only.

    Node i has `values[indexes[i] - 1]`, or nothing if `indexes[i]` is 0."""

    values: Sequence[Any]
    indexes: Sequence[int]

    def __init__(self, values: Sequence[Any], indexes: Sequence[int]) -> None:
        self.values = values
        self.indexes = indexes

    def map(self, function: Callable[[Any], Value], absent: Value) -> List[Value]:
        """`function(value)` for each node, called once per distinct value; `absent` for nodes without one."""
        results = [absent, *map(function, self.values)]
        return [results[index] for index in self.indexes]


class Columns:
    """The nodes of a call: sequences with one entry per node, in the same order. Read-only.

    With numpy: `numpy.array(columns.allocatable("cpu"))`. On a host whose nodes come with each call, only the parts in
    `needed_fields` are there; other parts are as on nodes without them."""

    @property
    def names(self) -> Sequence[str]:
        raise NotImplementedError

    @property
    def unschedulable(self) -> Sequence[bool]:
        """Whether nodes are cordoned."""
        raise NotImplementedError

    @property
    def taints(self) -> Dictionary:
        """Values are lists of the contract's Taint, none of them empty."""
        raise NotImplementedError

    def label(self, key: str) -> Dictionary:
        """Values are texts."""
        raise NotImplementedError

    def annotation(self, key: str) -> Dictionary:
        """Values are texts."""
        raise NotImplementedError

    def allocatable(self, resource: str) -> Sequence[int]:
        """By Kubernetes' name: `cpu` in thousandths of a core, `memory` in bytes; -1 for nodes that do not name it."""
        raise NotImplementedError

    def requested(self, resource: str) -> Sequence[int]:
        """The sum of the requests of each node's pods; of `pods`, their number."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.names)


class SentColumns(Columns):
    """Columns that came with a call. `with_nominated`: `requested` counts the nominated pods, too."""

    def __init__(self, message: Any, with_nominated: bool = False) -> None:
        self._message = message
        self._with_nominated = with_nominated

    @property
    def names(self) -> Sequence[str]:
        names: Sequence[str] = self._message.names
        return names

    @property
    def unschedulable(self) -> Sequence[bool]:
        cordoned: Sequence[bool] = self._message.unschedulable
        return cordoned

    @functools.cached_property
    def taints(self) -> Dictionary:
        sent = self._message.taints
        return Dictionary([each.taints for each in sent.values], sent.indexes or [0] * len(self))

    def label(self, key: str) -> Dictionary:
        return self._dictionary(self._labels, key)

    def annotation(self, key: str) -> Dictionary:
        return self._dictionary(self._annotations, key)

    def allocatable(self, resource: str) -> Sequence[int]:
        column = self._allocatable.get(resource)
        amounts: Sequence[int] = [NOT_NAMED] * len(self) if column is None else column.amounts
        return amounts

    def requested(self, resource: str) -> Sequence[int]:
        column = self._requested.get(resource)
        amounts: Sequence[int] = [0] * len(self) if column is None else column.amounts
        nominated = self._nominated.get(resource) if self._with_nominated else None
        return amounts if nominated is None else [a + b for a, b in zip(amounts, nominated.amounts)]

    @functools.cached_property
    def crowded(self) -> List[int]:
        """Positions of the nodes with nominated pods that request something, or whose number was asked for."""
        columns = [column.amounts for column in self._nominated.values()]
        return [i for i, amounts in enumerate(zip(*columns)) if any(amounts)]

    @functools.cached_property
    def _labels(self) -> Dict[str, Any]:
        return {column.key: column for column in self._message.labels}

    @functools.cached_property
    def _annotations(self) -> Dict[str, Any]:
        return {column.key: column for column in self._message.annotations}

    @functools.cached_property
    def _allocatable(self) -> Dict[str, Any]:
        return {column.resource: column for column in self._message.allocatable}

    @functools.cached_property
    def _requested(self) -> Dict[str, Any]:
        return {column.resource: column for column in self._message.requested}

    @functools.cached_property
    def _nominated(self) -> Dict[str, Any]:
        return {column.resource: column for column in self._message.nominated_requested}

    def _dictionary(self, columns: Dict[str, Any], key: str) -> Dictionary:
        column = columns.get(key)
        return Dictionary((), [0] * len(self)) if column is None else Dictionary(column.values, column.indexes)


class NodesAsColumns(Columns):
    """Columns of `api.Node`s, made as a plugin asks for them."""

    def __init__(self, nodes: Sequence[Any]) -> None:
        self._nodes = nodes

    @functools.cached_property
    def names(self) -> Sequence[str]:
        return [node.name for node in self._nodes]

    @functools.cached_property
    def unschedulable(self) -> Sequence[bool]:
        return [node.unschedulable for node in self._nodes]

    @functools.cached_property
    def taints(self) -> Dictionary:
        # Messages have no hash; their bytes do.
        keys = [tuple(taint.SerializeToString(deterministic=True) for taint in node.taints) or None for node in self._nodes]
        lists = {key: node.taints for key, node in zip(keys, self._nodes)}
        distinct, indexes = _distinct(keys)
        return Dictionary([lists[key] for key in distinct], indexes)

    def label(self, key: str) -> Dictionary:
        return Dictionary(*_distinct([node.labels.get(key) for node in self._nodes]))

    def annotation(self, key: str) -> Dictionary:
        return Dictionary(*_distinct([node.annotations.get(key) for node in self._nodes]))

    def allocatable(self, resource: str) -> Sequence[int]:
        return [_amount(node.allocatable, resource, NOT_NAMED) for node in self._nodes]

    def requested(self, resource: str) -> Sequence[int]:
        return [_amount(node.requested, resource, 0) for node in self._nodes]

    def __len__(self) -> int:
        return len(self._nodes)


def _distinct(each: Sequence[Optional[Any]]) -> Tuple[List[Any], List[int]]:
    """The values and indexes of a Dictionary; None: no value."""
    known: Dict[Any, int] = {}
    indexes = [0 if value is None else known.setdefault(value, len(known) + 1) for value in each]
    return list(known), indexes


def _amount(amounts: Any, resource: str, absent: int) -> int:
    field = FIELDS.get(resource)
    if field is None:
        return int(amounts.scalar[resource]) if resource in amounts.scalar else absent
    return int(getattr(amounts, field)) if amounts.HasField(field) else absent

"""Resource requests of pods."""

from __future__ import annotations

from typing import Any, Dict, Iterable

from outboard_plugin.proto import pb

# By name: cpu in thousandths, memory in bytes, other resources in their own units.
Amounts = Dict[str, int]


def _amounts(resources: Any) -> Amounts:
    found = dict(resources.scalar)
    found["cpu"] = resources.cpu_millis
    found["memory"] = resources.memory_bytes
    found["ephemeral-storage"] = resources.ephemeral_storage_bytes
    return found


def _add(into: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        into[name] = into.get(name, 0) + amount


def _raise_to(into: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        into[name] = max(into.get(name, 0), amount)


def _resized(pod: Any, wanted: Any, actual: Any, allocated: Any) -> Amounts:
    """During an in-place resize: the maximum of the wanted, allocated and actual requests."""
    amounts = _amounts(actual)
    _raise_to(amounts, _amounts(allocated))
    if not pod.resize_infeasible:
        _raise_to(amounts, _amounts(wanted))
    return amounts


def _of_container(pod: Any, container: Any) -> Amounts:
    for status in pod.container_statuses:
        if status.name == container.name and status.HasField("actual_requests"):
            return _resized(pod, container.requests, status.actual_requests, status.allocated_requests)
    return _amounts(container.requests)


def of_pod(pod: Any) -> Amounts:
    """Kubernetes' effective request: the maximum of each init container (with the sidecars before it) and of all containers
    with all sidecars. A pod-level request replaces the value of its resource. The overhead is added."""
    total: Amounts = {}
    for container in pod.containers:
        _add(total, _of_container(pod, container))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in pod.init_containers:
        if container.restart_policy_always:
            own = _of_container(pod, container)
            _add(total, own)
            _add(sidecars, own)
            _raise_to(starting, sidecars)
        else:
            moment = _amounts(container.requests)
            _add(moment, sidecars)
            _raise_to(starting, moment)
    _raise_to(total, starting)
    wanted = pod.pod_requests
    level = (
        _resized(pod, wanted, pod.pod_actual_requests, pod.pod_allocated_requests)
        if pod.HasField("pod_actual_requests")
        else _amounts(wanted)
    )
    if wanted.HasField("cpu_millis"):
        total["cpu"] = level["cpu"]
    if wanted.HasField("memory_bytes"):
        total["memory"] = level["memory"]
    for name in wanted.scalar:
        if name.startswith("hugepages-"):
            total[name] = level.get(name, 0)
    _add(total, _amounts(pod.overhead))
    return total


def total(pods: Iterable[Any]) -> Any:
    """The sum over the pods, and their number, as a ResourceList."""
    amounts: Amounts = {}
    count = 0
    for pod in pods:
        _add(amounts, of_pod(pod))
        count += 1
    return _to_list(amounts, count)


def both(a: Any, b: Any) -> Any:
    """The sum of two ResourceLists."""
    amounts = _amounts(a)
    _add(amounts, _amounts(b))
    return _to_list(amounts, a.pods + b.pods)


def _to_list(amounts: Amounts, pods: int) -> Any:
    return pb.ResourceList(
        cpu_millis=amounts.pop("cpu", 0),
        memory_bytes=amounts.pop("memory", 0),
        ephemeral_storage_bytes=amounts.pop("ephemeral-storage", 0),
        pods=pods,
        scalar={name: amount for name, amount in amounts.items() if amount},
    )

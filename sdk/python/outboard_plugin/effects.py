"""Writes to the Kubernetes API that a plugin returns from `reserve`.

The shim carries them out, one after the other, before it binds the pod. It rejects what the contract does not allow
(`proto/outboard/v1beta1/effect.proto`); the pod then releases its node. Each effect of a pod has its own key:
[a-z0-9-]{1,63}.
"""

from __future__ import annotations

from typing import Any, Iterable, List, Mapping, Optional

from outboard_plugin.proto import pb


def patch_pod(
    key: str,
    annotations: Optional[Mapping[str, str]] = None,
    labels: Optional[Mapping[str, str]] = None,
    remove_annotations: Iterable[str] = (),
    remove_labels: Iterable[str] = (),
) -> Any:
    """Sets and removes annotations and labels of the pod. The shim needs the right to patch pods."""
    patch = pb.PatchPod(
        set_annotations=annotations or {},
        set_labels=labels or {},
        remove_annotations=remove_annotations,
        remove_labels=remove_labels,
    )
    return pb.Effect(key=key, patch_pod=patch)


def set_pod_condition(key: str, type: str, status: Optional[bool], reason: str, message: str = "") -> Any:  # noqa: A002
    """Sets a condition in the pod's status. `type` is `example.com/Name`; a status of None is Unknown."""
    value = {True: "CONDITION_STATUS_TRUE", False: "CONDITION_STATUS_FALSE", None: "CONDITION_STATUS_UNKNOWN"}[status]
    condition = pb.SetPodCondition(type=type, status=value, reason=reason, message=message)
    return pb.Effect(key=key, set_pod_condition=condition)


def record_event(key: str, reason: str, action: str, note: str, warning: bool = False) -> Any:
    """Records an event about the pod. Events are lossy."""
    kind = "TYPE_WARNING" if warning else "TYPE_NORMAL"
    event = pb.RecordEvent(type=pb.RecordEvent.Type.Value(kind), reason=reason, action=action, note=note)
    return pb.Effect(key=key, record_event=event)


def of_plugin(name: str, said: Optional[Iterable[Any]]) -> List[Any]:
    """Copies of the effects that the plugin returned, with its name."""
    effects = []
    for effect in said or ():
        if not isinstance(effect, pb.Effect):
            raise TypeError(f"reserve returned {type(effect).__name__}, not Reject or effects")
        copy = pb.Effect()
        copy.CopyFrom(effect)
        copy.plugin = name
        effects.append(copy)
    return effects

"""Writes to the Kubernetes API that a plugin returns from `reserve` or `pre_bind`, or passes to `Cluster.write`.

The shim carries out those of a pod, one after the other, before it binds the pod. It rejects what the contract does not
allow (`proto/outboard/v1beta1/effect.proto`); the pod then releases its node. Each effect of a pod has its own key:
[a-z0-9-]{1,63}.

Writes of objects need a declared resource with the verb (`Plugin.declared_resources`), which the shim's configuration
allows (`customResources`). They have preconditions: if the object has changed since the cluster cache got it, the write
fails and changes nothing.
"""

from __future__ import annotations

import json
from typing import Any, Iterable, List, Mapping, Optional

from outboard_plugin.objects import Object
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
    """Records an event about the pod. Events are lossy. `reason` and `action` are CamelCase; `note` is for users."""
    return pb.Effect(key=key, record_event=_event(reason, action, note, warning))


def record_object_event(
    key: str, about: Object, kind: str, reason: str, action: str, note: str, warning: bool = False
) -> Any:
    """As record_event, about an object of a declared resource; no verb is necessary. `kind` is the object's: "ConfigMap"."""
    event = _event(reason, action, note, warning)
    event.resource, event.namespace, event.name, event.uid = about.resource, about.namespace, about.name, about.uid
    event.kind = kind
    return pb.Effect(key=key, record_event=event)


def _event(reason: str, action: str, note: str, warning: bool) -> Any:
    kind = "TYPE_WARNING" if warning else "TYPE_NORMAL"
    return pb.RecordEvent(type=pb.RecordEvent.Type.Value(kind), reason=reason, action=action, note=note)


def create_object(key: str, resource: str, name: str, content: Mapping[str, Any], namespace: str = "") -> Any:
    """Creates an object; verb CREATE. `content` is the whole object with apiVersion and kind; the shim fills in the name and the
    namespace."""
    put = pb.PutObject(resource=resource, namespace=namespace, name=name, json=json.dumps(content))
    return pb.Effect(key=key, put_object=put)


def replace_object(key: str, old: Object, content: Mapping[str, Any]) -> Any:
    """Replaces an object as it is in the cluster cache; verb UPDATE. Fields that `content` lacks are removed."""
    return _replace(key, old, content, status=False)


def replace_status(key: str, old: Object, content: Mapping[str, Any]) -> Any:
    """As replace_object, for the status subresource: writes only `status` of the whole object `content`; verb UPDATE_STATUS."""
    return _replace(key, old, content, status=True)


def _replace(key: str, old: Object, content: Mapping[str, Any], status: bool) -> Any:
    put = pb.PutObject(json=json.dumps(content), status=status, **_identity(old))
    return pb.Effect(key=key, put_object=put)


def delete_object(key: str, old: Object) -> Any:
    """Deletes an object as it is in the cluster cache; verb DELETE."""
    return pb.Effect(key=key, delete_object=pb.DeleteObject(**_identity(old)))


def patch_object(key: str, old: Object, patch: Mapping[str, Any], status: bool = False, only_unchanged: bool = False) -> Any:
    """Changes parts of an object; verb PATCH, or PATCH_STATUS with `status`.

    A strategic merge patch for Kubernetes' own kinds, a JSON merge patch for custom resources. It must preserve what others
    changed meanwhile; with `only_unchanged` it fails if the object has changed since the cluster cache got it."""
    identity = _identity(old)
    if not only_unchanged:
        del identity["resource_version"]
    return pb.Effect(key=key, patch_object=pb.PatchObject(json=json.dumps(patch), status=status, **identity))


def _identity(old: Object) -> Any:
    return {
        "resource": old.resource,
        "namespace": old.namespace,
        "name": old.name,
        "uid": old.uid,
        "resource_version": old.resource_version,
    }


def of_plugin(name: str, said: Optional[Iterable[Any]]) -> List[Any]:
    """Copies of the effects that the plugin returned, with its name."""
    effects = []
    for effect in said or ():
        if not isinstance(effect, pb.Effect):
            raise TypeError(f"{name} returned {type(effect).__name__}, not a verdict or effects")
        copy = pb.Effect()
        copy.CopyFrom(effect)
        copy.plugin = name
        effects.append(copy)
    return effects

"""Objects of the resources that plugins declare: ConfigMaps, custom resources, and others."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Dict, Optional, Sequence


@dataclasses.dataclass(frozen=True)
class DeclaredResource:
    """A resource that a plugin reads or writes. The shim's configuration must allow it (`customResources`).

    `resource` is RESOURCE.VERSION.GROUP, as "jobs.v1.batch", or RESOURCE.VERSION for Kubernetes' core group, as
    "configmaps.v1". Secrets are not allowed; pods, nodes and namespaces only with verbs.
    `verbs` are the writes: CREATE, UPDATE, UPDATE_STATUS, DELETE, PATCH, PATCH_STATUS. None: the plugin only reads.
    `optional`: the plugin works without it. Otherwise the shim refuses the plugin if it does not allow all of this.
    """

    resource: str
    verbs: Sequence[str] = ()
    optional: bool = False


class Object:
    """An object of a declared resource. Read-only.

    Users write these objects: fields may be missing or have any type that the API server accepts."""

    def __init__(self, message: Any) -> None:
        self.message = message  # The contract's GenericObject.
        self.resource: str = message.resource
        self.namespace: str = message.namespace  # Empty where the resource has no namespaces.
        self.name: str = message.name
        self.uid: str = message.uid
        self.resource_version: str = message.resource_version
        self.deleting: bool = message.deleting
        self._content: Optional[Dict[str, Any]] = None

    @property
    def content(self) -> Dict[str, Any]:
        """The whole object as the API server has it, without metadata.managedFields. Parsed on the first use."""
        if self._content is None:
            try:
                parsed = json.loads(self.message.json)
            except ValueError:
                parsed = {}
            self._content = parsed if isinstance(parsed, dict) else {}
        return self._content

    def at(self, *path: str) -> Any:
        """The value at a path of keys: `at("data", "limit")`. None if a part of the path is missing."""
        value: Any = self.content
        for key in path:
            if not isinstance(value, dict) or key not in value:
                return None
            value = value[key]
        return value

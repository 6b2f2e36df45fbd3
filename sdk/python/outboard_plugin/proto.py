"""The contract's messages and services, generated when first needed.

`pb` has every message and enum by its name; `services.add` adds a servicer. The .proto files lie in the package (`proto/`),
or, in a checkout of the project, above it.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import sys
import tempfile
import types
from typing import Any, Callable, Dict, Tuple

PACKAGE = "proto/outboard/v1alpha1"


def _root() -> pathlib.Path:
    """The folder above the contract's files."""
    here = pathlib.Path(__file__).resolve().parent
    for folder in (here, *here.parents):
        if (folder / PACKAGE).is_dir():
            return folder
    raise ImportError(f"the contract is missing: no {PACKAGE} in or above {here}")


def _generate(into: str) -> None:
    from grpc_tools import protoc

    root = _root()
    files = sorted(str(path.relative_to(root)) for path in (root / PACKAGE).glob("*.proto"))
    if protoc.main(["protoc", f"-I{root}", f"--python_out={into}", f"--grpc_python_out={into}", *files]) != 0:
        raise ImportError("the contract could not be compiled")


def _load(generated: str) -> Tuple[Any, Dict[str, Callable[[Any, Any], None]]]:
    messages, adders = types.SimpleNamespace(), {}
    # The generated modules import each other as proto.outboard.…; this module must not stand in their way.
    sys.path.insert(0, generated)
    for path in sorted((pathlib.Path(generated) / PACKAGE).glob("*_pb2*.py")):
        module = importlib.import_module(f"{PACKAGE.replace('/', '.')}.{path.stem}")
        for name, value in vars(module).items():
            if name.startswith("add_") and name.endswith("Servicer_to_server"):
                adders[name[len("add_") : -len("Servicer_to_server")]] = value
            elif path.stem.endswith("_pb2") and not name.startswith("_"):
                setattr(messages, name, value)
    return messages, adders


class _Services:
    def __init__(self, adders: Dict[str, Callable[[Any, Any], None]]) -> None:
        self._adders = adders

    def add(self, service: str, servicer: Any, server: Any) -> None:
        self._adders[service](servicer, server)


# Every message and enum of the contract by its name.
pb: Any
services: _Services

_generated = os.environ.get("OUTBOARD_PLUGIN_GENERATED")
if _generated is not None:
    pb, _adders = _load(_generated)
else:
    with tempfile.TemporaryDirectory(prefix="outboard-plugin-") as _folder:
        _generate(_folder)
        pb, _adders = _load(_folder)
services = _Services(_adders)

"""The contract's messages and services, generated on the first import.

`pb` has every message and enum by name, and RpcStatus. `raw` has FilterRequest and ScoreRequest with `inline_nodes` as unparsed bytes.
`services.add` adds a servicer. The .proto files are in the package (`proto/`), or, in a checkout of the project, above it.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import sys
import tempfile
import types
from typing import Any, Callable, Dict, Tuple

PACKAGE = "outboard/v1beta1"
HANDSHAKE = "outboard/handshake/v1"
RAW = ("filter", "score")
RPC_STATUS = "call_errors/rpc_status"


def _root() -> pathlib.Path:
    """The folder to which imports of the contract's files are relative."""
    here = pathlib.Path(__file__).resolve().parent
    for folder in (here, *here.parents):
        if (folder / "proto" / PACKAGE).is_dir():
            return folder / "proto"
    raise ImportError(f"the contract is missing: no proto/{PACKAGE} in or above {here}")


def _write_raw(root: pathlib.Path, into: pathlib.Path) -> None:
    """Writes copies of the files with inline_nodes, equal on the wire. protoc looks up names missing in the nested package in
    the enclosing packages."""
    (into / PACKAGE).mkdir(parents=True)
    for name in RAW:
        text = (root / PACKAGE / f"{name}.proto").read_text(encoding="utf-8")
        text = text.replace("package outboard.v1beta1;", "package outboard.v1beta1.raw;")
        text = text.replace("repeated InlineNode inline_nodes", "repeated bytes inline_nodes")
        text = text.replace(f'import "{PACKAGE}/inline_node.proto";\n', "")
        (into / PACKAGE / f"raw_{name}.proto").write_text(text, encoding="utf-8")


def _generate(into: str) -> None:
    from grpc_tools import protoc

    root, copies = _root(), pathlib.Path(into) / "raw"
    _write_raw(root, copies)
    files = sorted(str(path.relative_to(root)) for package in (PACKAGE, HANDSHAKE) for path in (root / package).glob("*.proto"))
    files += [f"{PACKAGE}/raw_{name}.proto" for name in RAW] + [f"{RPC_STATUS}.proto"]
    outputs = [f"--python_out={into}", f"--grpc_python_out={into}"]
    if protoc.main(["protoc", f"-I{root}", f"-I{copies}", *outputs, *files]) != 0:
        raise ImportError("the contract could not be compiled")


def _load(generated: str) -> Tuple[Any, Any, Dict[str, Callable[[Any, Any], None]]]:
    messages, raw_messages = types.SimpleNamespace(), types.SimpleNamespace()
    adders: Dict[str, Callable[[Any, Any], None]] = {}
    # The generated modules import each other as outboard.v1beta1.…
    sys.path.insert(0, generated)
    try:
        return _import(pathlib.Path(generated), messages, raw_messages, adders)
    finally:
        sys.path.remove(generated)


def _import(
    generated: pathlib.Path, messages: Any, raw_messages: Any, adders: Dict[str, Callable[[Any, Any], None]]
) -> Tuple[Any, Any, Dict[str, Callable[[Any, Any], None]]]:
    for path in sorted(path for package in (PACKAGE, HANDSHAKE) for path in (generated / package).glob("*_pb2*.py")):
        module = importlib.import_module(".".join(path.relative_to(generated).with_suffix("").parts))
        if path.stem.startswith("raw_"):
            for name in ("FilterRequest", "ScoreRequest"):
                if path.stem.endswith("_pb2") and hasattr(module, name):
                    setattr(raw_messages, name, getattr(module, name))
            continue
        for name, value in vars(module).items():
            if name.startswith("add_") and name.endswith("Servicer_to_server"):
                adders[name[len("add_") : -len("Servicer_to_server")]] = value
            elif path.stem.endswith("_pb2") and not name.startswith("_"):
                setattr(messages, name, value)
    messages.RpcStatus = importlib.import_module(f"{RPC_STATUS.replace('/', '.')}_pb2").RpcStatus
    return messages, raw_messages, adders


class _Services:
    def __init__(self, adders: Dict[str, Callable[[Any, Any], None]]) -> None:
        self._adders = adders

    def add(self, service: str, servicer: Any, server: Any) -> None:
        self._adders[service](servicer, server)


# Every message and enum of the contract by name.
pb: Any
raw: Any
services: _Services

_generated = os.environ.get("OUTBOARD_PLUGIN_GENERATED")
if _generated is not None:
    pb, raw, _adders = _load(_generated)
else:
    with tempfile.TemporaryDirectory(prefix="outboard-plugin-") as _folder:
        _generate(_folder)
        pb, raw, _adders = _load(_folder)
services = _Services(_adders)

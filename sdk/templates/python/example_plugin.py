"""ExamplePlugin: prefers nodes that have the pod's dataset, or requires them."""

try:
    from outboard_plugin import Plugin, Unresolvable, serve
except ModuleNotFoundError as error:
    raise SystemExit(
        f"{error}: outboard_plugin is in Outboard's package, the other modules are those of "
        "requirements.txt; README.md says how to install both"
    ) from error

# Annotation of a pod: the dataset that it reads.
DATASET = "example-plugin/dataset"
# Annotation of a node: the datasets on its disks, separated by commas.
DATASETS = "example-plugin/datasets"


class ExamplePlugin(Plugin):
    # The shim sends only annotations that a plugin declares.
    needed_fields = (
        f"Pod.metadata.annotations['{DATASET}']",
        f"Node.metadata.annotations['{DATASETS}']",
    )
    # Events that may make a rejected pod schedulable.
    wake_up_events = (("Node", "ADD"), ("Node", "UPDATE_NODE_ANNOTATION"))

    def __init__(self):
        self.configure({})

    def configure(self, args):
        for field in sorted(set(args) - {"required"}):
            raise ValueError(f"{field}: unknown field")
        required = args.get("required", False)
        if not isinstance(required, bool):
            raise ValueError("required: must be true or false")
        self.required = required

    def filter(self, pod, node):
        if not self.required or not pod.annotations.get(DATASET) or self.has_dataset(pod, node):
            return None
        # Unresolvable: evicting pods does not bring a dataset, so preemption cannot help.
        return Unresolvable("node(s) did not have the pod's dataset")

    def score(self, pod, node):
        return 100 if self.has_dataset(pod, node) else 0

    def has_dataset(self, pod, node):
        on_disk = node.annotations.get(DATASETS, "").split(",")
        return pod.annotations.get(DATASET) in [name.strip() for name in on_disk if name.strip()]


if __name__ == "__main__":
    serve(ExamplePlugin())

"""Effects: writes that plugins want."""

import json
import unittest

from outboard_plugin import Object, effects
from outboard_plugin.proto import pb


class EffectsTest(unittest.TestCase):
    def test_a_patch_has_all_of_its_parts(self):
        effect = effects.patch_pod("k", {"a": "1"}, {"l": "2"}, ["b"], ["m"])
        self.assertEqual(effect.key, "k")
        self.assertEqual(dict(effect.patch_pod.set_annotations), {"a": "1"})
        self.assertEqual(dict(effect.patch_pod.set_labels), {"l": "2"})
        self.assertEqual(list(effect.patch_pod.remove_annotations), ["b"])
        self.assertEqual(list(effect.patch_pod.remove_labels), ["m"])

    def test_a_condition_is_true_false_or_unknown(self):
        for status, name in ((True, "CONDITION_STATUS_TRUE"), (False, "CONDITION_STATUS_FALSE"), (None, "CONDITION_STATUS_UNKNOWN")):
            condition = effects.set_pod_condition("k", "example.com/Held", status, "Held", "text").set_pod_condition
            self.assertEqual(condition.status, getattr(pb, name))
            self.assertEqual((condition.type, condition.reason, condition.message), ("example.com/Held", "Held", "text"))

    def test_an_event_is_normal_or_a_warning(self):
        event = effects.record_event("k", "Held", "Holding", "note").record_event
        self.assertEqual(event.type, pb.RecordEvent.TYPE_NORMAL)
        self.assertEqual((event.reason, event.action, event.note), ("Held", "Holding", "note"))
        warning = effects.record_event("k", "Held", "Holding", "note", warning=True).record_event
        self.assertEqual(warning.type, pb.RecordEvent.TYPE_WARNING)

    def test_objects_are_written_as_they_are_in_the_cache(self):
        old = Object(pb.GenericObject(resource="configmaps.v1", namespace="ns", name="a", uid="u", resource_version="7"))

        def identity(write):
            return (write.resource, write.namespace, write.name, write.uid, write.resource_version)

        whole = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "é"}}
        created = effects.create_object("k", "configmaps.v1", "b", whole, namespace="ns")
        self.assertEqual(created.key, "k")
        self.assertEqual(identity(created.put_object), ("configmaps.v1", "ns", "b", "", ""))
        self.assertEqual(json.loads(created.put_object.json), whole)
        for make, status in ((effects.replace_object, False), (effects.replace_status, True)):
            replaced = make("k", old, whole).put_object
            self.assertEqual(identity(replaced), ("configmaps.v1", "ns", "a", "u", "7"))
            self.assertEqual((json.loads(replaced.json), replaced.status), (whole, status))
        self.assertEqual(identity(effects.delete_object("k", old).delete_object), ("configmaps.v1", "ns", "a", "u", "7"))
        for fields, version in (({}, ""), ({"only_unchanged": True}, "7"), ({"status": True}, "")):
            patched = effects.patch_object("k", old, {"data": {"x": None}}, **fields).patch_object
            self.assertEqual(identity(patched), ("configmaps.v1", "ns", "a", "u", version))
            self.assertEqual((patched.json, patched.status), ('{"data": {"x": null}}', "status" in fields))

    def test_an_event_may_be_about_an_object(self):
        about = Object(pb.GenericObject(resource="configmaps.v1", namespace="ns", name="a", uid="u"))
        event = effects.record_object_event("k", about, "ConfigMap", "Read", "Reading", "note", warning=True).record_event
        self.assertEqual(
            (event.resource, event.namespace, event.name, event.uid, event.kind), ("configmaps.v1", "ns", "a", "u", "ConfigMap")
        )
        self.assertEqual((event.reason, event.action, event.note), ("Read", "Reading", "note"))
        self.assertEqual(event.type, pb.RecordEvent.TYPE_WARNING)

    def test_effects_get_the_name_of_their_plugin_and_others_are_errors(self):
        effect = effects.record_event("k", "Held", "Holding", "note")
        self.assertEqual([named.plugin for named in effects.of_plugin("P", [effect])], ["P"])
        self.assertEqual(effect.plugin, "", "the plugin's own message stays as it is")
        self.assertEqual(effects.of_plugin("P", None), [])
        with self.assertRaises(TypeError):
            effects.of_plugin("P", ["x"])


if __name__ == "__main__":
    unittest.main()

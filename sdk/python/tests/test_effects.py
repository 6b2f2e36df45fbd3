"""Effects that plugins return from reserve."""

import unittest

from outboard_plugin import effects
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

    def test_effects_get_the_name_of_their_plugin_and_others_are_errors(self):
        effect = effects.record_event("k", "Held", "Holding", "note")
        self.assertEqual([named.plugin for named in effects.of_plugin("P", [effect])], ["P"])
        self.assertEqual(effect.plugin, "", "the plugin's own message stays as it is")
        self.assertEqual(effects.of_plugin("P", None), [])
        with self.assertRaises(TypeError):
            effects.of_plugin("P", ["x"])


if __name__ == "__main__":
    unittest.main()

package example;

import java.util.List;
import java.util.function.ToIntFunction;
import outboard.v1alpha1.Call;
import outboard.v1alpha1.InlineNodeOuterClass.InlineNode;
import outboard.v1alpha1.PluginHost.ClusterEvent;
import outboard.v1alpha1.PluginHost.ExtensionPoint;
import outboard.v1alpha1.PluginHost.PluginInfo;
import outboard.v1alpha1.Types.Pod;

/**
 * Pods that need a licence go only where one is free; of the nodes left the cheap ones are preferred.
 *
 * <p>A node has as many licences as its annotation says, and its price, a number, in a label. Pods that need one have a label.
 */
final class Licences {
  static final String NAME = "Licences";
  static final String LICENCES = "example.com/licences";
  static final String PRICE = "example.com/price";
  static final String NEEDS_LICENCE = "example.com/needs-licence";

  private Licences() {}

  static PluginInfo info() {
    return PluginInfo.newBuilder()
        .setName(NAME)
        .addExtensionPoints(ExtensionPoint.FILTER)
        .addExtensionPoints(ExtensionPoint.SCORE)
        .addNeededFields("Node.metadata.annotations['" + LICENCES + "']")
        .addNeededFields("Node.metadata.labels['" + PRICE + "']")
        .addNeededFields("Node.pods")
        .addWakeUpEvents(
            ClusterEvent.newBuilder()
                .setResource("Node")
                .addActions(ClusterEvent.Action.ADD)
                .addActions(ClusterEvent.Action.UPDATE_NODE_ANNOTATION))
        .addWakeUpEvents(ClusterEvent.newBuilder().setResource("Pod").addActions(ClusterEvent.Action.DELETE))
        .build();
  }

  /**
   * Why the node cannot take the pod; null: it can. Pods that the node is kept in mind for count; more pods never make a node better,
   * so a second look without them says nothing new. NumberFormatException: the annotation is no number.
   */
  static Call.PluginStatus judge(Pod pod, InlineNode node) {
    if (!needsLicence(pod)) {
      return null;
    }
    int licences = Integer.parseInt(node.getNode().getAnnotationsOrDefault(LICENCES, "0").strip());
    long taken = count(node.getPodsList()) + count(node.getNominatedPodsList());
    if (taken < licences) {
      return null;
    }
    // Where there is none at all, nobody's leaving helps.
    Call.Code code = licences > 0 ? Call.Code.UNSCHEDULABLE : Call.Code.UNSCHEDULABLE_AND_UNRESOLVABLE;
    return Call.PluginStatus.newBuilder().setPlugin(NAME).setCode(code).addReasons("node(s) had no free licence").build();
  }

  private static long count(List<Pod> pods) {
    return pods.stream().filter(Licences::needsLicence).count();
  }

  private static boolean needsLicence(Pod pod) {
    return pod.containsLabels(NEEDS_LICENCE);
  }

  /** 100 for the cheapest, 0 for the dearest and for nodes without a price. */
  static byte[] scores(List<InlineNode> nodes) {
    ToIntFunction<InlineNode> price = node -> Integer.parseInt(node.getNode().getLabelsOrThrow(PRICE));
    int[] priced = nodes.stream().filter(node -> node.getNode().containsLabels(PRICE)).mapToInt(price).sorted().toArray();
    byte[] scores = new byte[nodes.size()];
    for (int i = 0; i < scores.length; ++i) {
      InlineNode node = nodes.get(i);
      if (!node.getNode().containsLabels(PRICE)) {
        continue;
      }
      long cheapest = priced[0];
      long dearest = priced[priced.length - 1];
      scores[i] = (byte) (dearest == cheapest ? 100 : 100 * (dearest - price.applyAsInt(node)) / (dearest - cheapest));
    }
    return scores;
  }
}

package example;

import dev.outboard.v1beta1.ClusterEvent;
import dev.outboard.v1beta1.Code;
import dev.outboard.v1beta1.ExtensionPoint;
import dev.outboard.v1beta1.InlineNode;
import dev.outboard.v1beta1.PluginInfo;
import dev.outboard.v1beta1.PluginStatus;
import dev.outboard.v1beta1.Pod;
import java.util.List;
import java.util.function.ToIntFunction;

/**
 * Pods that need a licence go only to nodes with a free one; cheap nodes are preferred.
 *
 * <p>An annotation has the node's number of licences, a label its price, a number. A label marks pods that need a licence.
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
        .addExtensionPoints(ExtensionPoint.EXTENSION_POINT_FILTER)
        .addExtensionPoints(ExtensionPoint.EXTENSION_POINT_SCORE)
        .addNeededFields("Node.metadata.annotations['" + LICENCES + "']")
        .addNeededFields("Node.metadata.labels['" + PRICE + "']")
        .addNeededFields("Node.pods")
        .addWakeUpEvents(
            ClusterEvent.newBuilder()
                .setResource("Node")
                .addActions(ClusterEvent.Action.ACTION_ADD)
                .addActions(ClusterEvent.Action.ACTION_UPDATE_NODE_ANNOTATION))
        .addWakeUpEvents(ClusterEvent.newBuilder().setResource("Pod").addActions(ClusterEvent.Action.ACTION_DELETE))
        .build();
  }

  /**
   * Why the node cannot take the pod; null: it can. Pods nominated to the node count; more pods never make a node feasible, so a
   * second evaluation without them is not needed. NumberFormatException: the annotation is not a number.
   */
  static PluginStatus check(Pod pod, InlineNode node) {
    if (!needsLicence(pod)) {
      return null;
    }
    int licences = Integer.parseInt(node.getNode().getAnnotationsOrDefault(LICENCES, "0").strip());
    long taken = count(node.getPodsList()) + count(node.getNominatedPodsList());
    if (taken < licences) {
      return null;
    }
    // On a node without licences, evictions do not help.
    Code code = licences > 0 ? Code.CODE_UNSCHEDULABLE : Code.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE;
    return PluginStatus.newBuilder().setPlugin(NAME).setCode(code).addReasons("node(s) had no free licence").build();
  }

  private static long count(List<Pod> pods) {
    return pods.stream().filter(Licences::needsLicence).count();
  }

  private static boolean needsLicence(Pod pod) {
    return pod.containsLabels(NEEDS_LICENCE);
  }

  /** 100 for the cheapest, 0 for the most expensive and for nodes without a price. */
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

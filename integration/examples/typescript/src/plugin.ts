// What the host needs from a plugin.
import type { ExtensionPoint__Output as ExtensionPoint } from './generated/outboard/v1beta1/ExtensionPoint.js';
import type { Node__Output as Node } from './generated/outboard/v1beta1/Node.js';
import type { PluginInfo } from './generated/outboard/v1beta1/PluginInfo.js';
import type { PluginStatus } from './generated/outboard/v1beta1/PluginStatus.js';
import type { Pod__Output as Pod } from './generated/outboard/v1beta1/Pod.js';

export type { Node, Pod, PluginStatus };

/** What plugin_host.proto calls PluginInfo, and the functions of its extension points. */
export interface Plugin extends PluginInfo {
  name: string;
  extensionPoints: ExtensionPoint[];
  /** Returns why the node is rejected, if it is. */
  filter?(pod: Pod, node: Node): Pick<PluginStatus, 'code' | 'reasons'> | undefined;
  /** Returns 0 to 100 for each node. */
  score?(pod: Pod, nodes: Node[]): number[];
}

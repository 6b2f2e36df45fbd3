// Pods that need recent hardware get it, and other pods leave it to them.
import type { Plugin } from './plugin.js';

const GENERATION = 'example.com/hardware-generation';
const MINIMUM = 'example.com/min-hardware-generation';

/** The label's value as a whole number; 0 without a valid one. */
function generation(labels: Record<string, string>, key: string): number {
  const value = labels[key] ?? '';
  return /^\d{1,4}$/.test(value) ? Number(value) : 0;
}

/**
 * Filter rejects nodes of an older generation (a label) than a label of the pod asks for. Score prefers the oldest
 * hardware, so that newer nodes stay free.
 */
export const hardwareGeneration: Plugin = {
  name: 'HardwareGeneration',
  extensionPoints: ['EXTENSION_POINT_FILTER', 'EXTENSION_POINT_SCORE'],
  neededFields: [`Node.metadata.labels['${GENERATION}']`],
  wakeUpEvents: [{ resource: 'Node', actions: ['ACTION_ADD', 'ACTION_UPDATE_NODE_LABEL'] }],

  filter(pod, node) {
    if (generation(node.labels, GENERATION) >= generation(pod.labels, MINIMUM)) return undefined;
    return { code: 'CODE_UNSCHEDULABLE_AND_UNRESOLVABLE', reasons: ['node(s) had too old hardware'] };
  },

  score(_pod, nodes) {
    const generations = nodes.map((node) => generation(node.labels, GENERATION));
    const newest = generations.reduce((a, b) => Math.max(a, b), 0);
    const range = newest - generations.reduce((a, b) => Math.min(a, b), newest);
    return generations.map((one) => (range === 0 ? 0 : Math.round((100 * (newest - one)) / range)));
  },
};

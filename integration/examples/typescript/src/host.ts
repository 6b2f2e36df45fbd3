// A plugin host without a cluster cache: each call brings the nodes. Usage: host.js --listen unix:PATH
import * as grpc from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { CallError, handshake, messageOf, serve, v1beta1 } from './contract.js';
import type { FilterRequest__Output as FilterRequest } from './generated/outboard/v1beta1/FilterRequest.js';
import type { ProfileConfig__Output as ProfileConfig } from './generated/outboard/v1beta1/ProfileConfig.js';
import { hardwareGeneration } from './hardware_generation.js';
import type { Node, Plugin, PluginStatus, Pod } from './plugin.js';

const plugins = new Map<string, Plugin>([hardwareGeneration].map((plugin) => [plugin.name, plugin]));
const instance = randomUUID();
const startedUnixMicros = Date.now() * 1000;
const sessions = new Map<string, { profiles: ProfileConfig[]; ended: boolean }>();
let draining = false;

// inline_node.proto; gRPC's default is 4 MiB.
const server = new grpc.Server({ 'grpc.max_receive_message_length': 64 << 20 });

serve(server, handshake.v1.HandshakeService.service, {
  Handshake: () => ({ contractVersions: ['v1beta1'], instance, build: 'example', startedUnixMicros }),
});

serve(server, v1beta1.PluginHostService.service, {
  GetHostInfo: () => ({ plugins: [...plugins.values()], capabilities: ['CAPABILITY_INLINE_NODES'] }),

  Configure: ({ sessionId, instance: intended, profiles, validateOnly }) => {
    if (intended !== instance) throw new CallError('WRONG_INSTANCE', `this is instance ${instance}`);
    if (!/^[a-z0-9-]{1,63}$/.test(sessionId)) throw new CallError('INVALID', 'session_id is not valid');
    if (draining || sessions.get(sessionId)?.ended) throw new CallError('DRAINING', 'this host drains');
    const problems = profiles.flatMap(problemsOf);
    if (problems.length === 0 && !validateOnly) {
      sessions.delete(sessionId);
      sessions.set(sessionId, { profiles, ended: false });
      const [configuredFirst] = sessions.keys();
      if (sessions.size > 64 && configuredFirst) sessions.delete(configuredFirst); // The contract requires 8.
    }
    return { problems };
  },

  Probe: ({ sessionId }) => {
    const session = sessions.get(sessionId);
    if (draining || session?.ended) return { instance, state: 'STATE_DRAINING', reason: 'this host drains' };
    if (sessionId && !session) return { instance, state: 'STATE_INITIALIZING', reason: 'not configured' };
    return { instance, state: 'STATE_READY' };
  },

  EndSession: ({ sessionId }) => {
    const session = sessions.get(sessionId);
    if (session) session.ended = true;
    return {};
  },

  Drain: () => {
    draining = true;
    return {};
  },
});

serve(server, v1beta1.FilterService.service, {
  Filter: (request) => {
    const slots = request.search ? request.search.nodes?.slots : request.simulation?.nodes;
    const { enabled, pod, nodes } = read(request, slots, 'EXTENSION_POINT_FILTER');
    if (!request.what) throw new CallError('INVALID', 'search or simulation is required');
    const feasible = Buffer.alloc(Math.ceil(nodes.length / 8));
    const [rejected, reasons]: [number[], PluginStatus[]] = [[], []];
    const positions = new Map<string, number>(); // In `reasons`.
    for (const [i, node] of nodes.entries()) {
      const verdict = rejectionOf(enabled, pod, node);
      if (!verdict) {
        feasible[i >> 3]! |= 1 << (i & 7);
        continue;
      }
      if (verdict.code === 'CODE_ERROR') {
        const before = feasible.subarray(0, Math.ceil(i / 8));
        if (request.search) return { processed: i, feasible: before, rejected, reasons, error: verdict };
        verdict.code = 'CODE_UNSCHEDULABLE_AND_UNRESOLVABLE'; // In a simulation, a plugin that fails rejects the node.
      }
      const key = JSON.stringify(verdict);
      const position = positions.get(key) ?? reasons.push(verdict) - 1;
      positions.set(key, position);
      rejected.push(position);
    }
    return { processed: nodes.length, feasible, rejected, reasons };
  },
});

serve(server, v1beta1.ScoreService.service, {
  Score: (request) => {
    const { enabled, pod, nodes } = read(request, request.nodes?.slots, 'EXTENSION_POINT_SCORE');
    const scored = [];
    for (const plugin of enabled) {
      try {
        scored.push({ plugin: plugin.name, scores: Buffer.from(plugin.score?.(pod, nodes) ?? []) });
      } catch (error) {
        return { error: failureOf(plugin, error) };
      }
    }
    return { plugins: scored };
  },
});

/** Checks a call about a pod. `slots` are the nodes that it is about, `inlineNodes` their contents. */
function read({ header, pod, inlineNodes }: Pick<FilterRequest, 'header' | 'pod' | 'inlineNodes'>,
  slots: unknown[] = [], point: Plugin['extensionPoints'][number]) {
  const session = sessions.get(header?.sessionId ?? '');
  if (!session) throw new CallError('SESSION_UNKNOWN', 'Configure did not name this session');
  const profile = session.profiles.find(({ name }) => name === header?.profile);
  if (!profile) throw new CallError('NOT_CONFIGURED', 'Configure did not name this profile');
  const nodes = inlineNodes.flatMap(({ node }) => node ?? []);
  if (!pod || nodes.length !== slots.length) throw new CallError('INVALID', 'pod or inline_nodes are missing');
  const names = profile.points.find(({ extensionPoint }) => extensionPoint === point)?.plugins ?? [];
  return { pod, nodes, enabled: names.flatMap((name) => plugins.get(name) ?? []) };
}

/** The first plugin's verdict that is not success. */
function rejectionOf(enabled: Plugin[], pod: Pod, node: Node): PluginStatus | undefined {
  for (const plugin of enabled) {
    try {
      const rejection = plugin.filter?.(pod, node);
      if (rejection) return { plugin: plugin.name, ...rejection };
    } catch (error) {
      return failureOf(plugin, error);
    }
  }
  return undefined;
}

const failureOf = (plugin: Plugin, error: unknown): PluginStatus =>
  ({ plugin: plugin.name, code: 'CODE_ERROR', reasons: [messageOf(error)] });

function problemsOf({ name: profile, points, args }: ProfileConfig) {
  const wrong = [
    ...points.flatMap(({ extensionPoint, plugins: names }) =>
      names.filter((name) => !plugins.get(name)?.extensionPoints.includes(extensionPoint))),
    ...args.filter(({ plugin, argsJson }) => argsJson !== '{}' || !plugins.has(plugin)).map(({ plugin }) => plugin),
  ];
  return wrong.map((plugin) => ({ profile, plugin, message: 'no such plugin, point or argument' }));
}

const { listen } = parseArgs({ options: { listen: { type: 'string' } } }).values;
if (!listen) throw new Error('--listen is required');
process.umask(0o177); // Only this user may connect.
server.bindAsync(listen.replace('{instance}', instance), grpc.ServerCredentials.createInsecure(), (error) => {
  if (error) throw error;
});

process.on('SIGTERM', () => {
  draining = true; // Shims probe once a second, and use another instance then.
  setTimeout(() => server.tryShutdown(() => process.exit()), 2000);
});

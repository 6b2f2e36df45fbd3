// The contract's services and errors, from the .proto files, which are read at the start.
import * as grpc from '@grpc/grpc-js';
import { loadSync, type MethodDefinition } from '@grpc/proto-loader';
import { fileURLToPath } from 'node:url';
import type { ProtoGrpcType } from './generated/contract.js';

// The types are generated with the same options; see package.json.
const options = { longs: String, enums: String, defaults: true, oneofs: true };
const includeDirs = ['../proto', '../src'].map((folder) => fileURLToPath(new URL(folder, import.meta.url)));
const loaded = grpc.loadPackageDefinition(loadSync('contract.proto', { ...options, includeDirs }));
export const { handshake, v1beta1, call_errors } = (loaded as unknown as ProtoGrpcType).outboard;

const { FAILED_PRECONDITION, INTERNAL, INVALID_ARGUMENT, UNAVAILABLE } = grpc.status;
const codes = {
  DRAINING: UNAVAILABLE, INTERNAL, INVALID: INVALID_ARGUMENT, NOT_CONFIGURED: FAILED_PRECONDITION,
  SESSION_UNKNOWN: FAILED_PRECONDITION, WRONG_INSTANCE: FAILED_PRECONDITION,
};

/** Ends a call without an answer. gRPC sends `code`, `details` and `metadata`. */
export class CallError extends Error {
  readonly code: grpc.status;
  readonly metadata = new grpc.Metadata();
  constructor(reason: keyof typeof codes, readonly details: string) {
    super(details);
    this.code = codes[reason];
    const value = v1beta1.CallError.serialize({ reason: `REASON_${reason}`, message: details });
    const detail = { typeUrl: 'type.googleapis.com/outboard.v1beta1.CallError', value };
    const rpcStatus = call_errors.RpcStatus.serialize({ code: this.code, message: details, details: [detail] });
    this.metadata.set('grpc-status-details-bin', rpcStatus);
  }
}

/** At most 1 KiB of UTF-8, as the contract requires of texts for people. */
export const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error)).slice(0, 256);

/** For each method of a service, a function from the request to the response. */
type Answers<Service> = {
  [Name in keyof Service as string extends Name ? never : Name]:
    Service[Name] extends MethodDefinition<any, infer Response, infer Request, any>
      ? (request: Request) => Response : never;
};

/** Serves a service. What a function throws is the call's error: a CallError, or INTERNAL. */
export function serve<Service extends grpc.ServiceDefinition>(
  server: grpc.Server, service: Service, answers: Answers<Service>) {
  const handlers: grpc.UntypedServiceImplementation = {};
  for (const [name, answer] of Object.entries<(request: any) => unknown>(answers)) {
    handlers[name] = (call: grpc.ServerUnaryCall<unknown, unknown>, callback: grpc.sendUnaryData<unknown>) => {
      try {
        callback(null, answer(call.request));
      } catch (error) {
        callback(error instanceof CallError ? error : new CallError('INTERNAL', messageOf(error)));
      }
    };
  }
  server.addService(service, handlers);
}

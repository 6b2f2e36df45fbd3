package example;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import dev.outboard.handshake.v1.HandshakeResponse;
import dev.outboard.handshake.v1.HandshakeServiceGrpc;
import dev.outboard.v1beta1.*;
import dev.outboard.v1beta1.CallError.Reason;
import io.grpc.HandlerRegistry;
import io.grpc.MethodDescriptor;
import io.grpc.ServerMethodDefinition;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ServerCalls;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * A host with INLINE_NODES and SINGLE_SESSION: it keeps no cluster state, only the configuration of
 * one shim.
 *
 * <p>Threading: any thread; it answers one call at a time.
 */
final class Host extends HandlerRegistry {
  final String instance = "java-" + UUID.randomUUID().toString().substring(0, 18);
  private final long startedMicros = System.currentTimeMillis() * 1000;
  private final Map<String, ServerMethodDefinition<?, ?>> methods = new HashMap<>();
  private String session = ""; // Empty: none.
  private Set<String> profiles = Set.of(); // Of the session.
  private long heardNanos; // When the session's last Configure or Probe came.
  private boolean draining;

  /** Other methods are UNIMPLEMENTED. */
  Host() {
    serve(HandshakeServiceGrpc.getHandshakeMethod(), request ->
        HandshakeResponse.newBuilder().addContractVersions("v1beta1").setInstance(instance)
            .setBuild("example").setStartedUnixMicros(startedMicros).build());
    serve(PluginHostServiceGrpc.getGetHostInfoMethod(), request ->
        GetHostInfoResponse.newBuilder().addPlugins(Licences.info())
            .addCapabilities(Capability.CAPABILITY_INLINE_NODES)
            .addCapabilities(Capability.CAPABILITY_SINGLE_SESSION).build());
    serve(PluginHostServiceGrpc.getConfigureMethod(), this::configure);
    serve(PluginHostServiceGrpc.getProbeMethod(), this::probe);
    serve(PluginHostServiceGrpc.getEndSessionMethod(), this::endSession);
    serve(FilterServiceGrpc.getFilterMethod(), this::filter);
    serve(ScoreServiceGrpc.getScoreMethod(), this::score);
  }

  private <Q, A> void serve(MethodDescriptor<Q, A> method, Function<Q, A> answer) {
    ServerCalls.UnaryMethod<Q, A> call = (request, observer) -> {
      A response;
      try {
        synchronized (this) {
          response = answer.apply(request);
        }
      } catch (StatusRuntimeException error) {
        observer.onError(error);
        return;
      } catch (RuntimeException error) {
        observer.onError(fail(Status.INTERNAL, Reason.REASON_INTERNAL, error.toString()));
        return;
      }
      observer.onNext(response);
      observer.onCompleted();
    };
    methods.put(method.getFullMethodName(),
        ServerMethodDefinition.create(method, ServerCalls.asyncUnaryCall(call)));
  }

  @Override
  public ServerMethodDefinition<?, ?> lookupMethod(String name, String authority) {
    return methods.get(name);
  }

  /** The error of a call: the CallError is a detail of the status. */
  private static StatusRuntimeException fail(Status status, Reason reason, String message) {
    CallError error = CallError.newBuilder().setReason(reason).setMessage(message).build();
    return StatusProto.toStatusRuntimeException(
        com.google.rpc.Status.newBuilder().setCode(status.getCode().value()).setMessage(message)
            .addDetails(Any.pack(error)).build());
  }

  private static void require(boolean valid, Status status, Reason reason, String message) {
    if (!valid) {
      throw fail(status, reason, message);
    }
  }

  private static void require(boolean valid, String message) {
    require(valid, Status.INVALID_ARGUMENT, Reason.REASON_INVALID, message);
  }

  private ConfigureResponse configure(ConfigureRequest request) {
    require(request.getInstance().equals(instance), Status.FAILED_PRECONDITION,
        Reason.REASON_WRONG_INSTANCE, "this is instance " + instance);
    require(!draining, Status.UNAVAILABLE, Reason.REASON_DRAINING, "the host is draining");
    require(request.getSessionId().matches("[a-z0-9-]{1,63}"), "session_id is not valid");
    ConfigureResponse.Builder response = ConfigureResponse.newBuilder();
    for (ProfileConfig profile : request.getProfilesList()) {
      for (PointConfig point : profile.getPointsList()) {
        boolean hasPoint =
            Licences.info().getExtensionPointsList().contains(point.getExtensionPoint());
        for (String plugin : point.getPluginsList()) {
          check(hasPoint && plugin.equals(Licences.NAME), profile, plugin, response);
        }
      }
      for (PluginArgs args : profile.getArgsList()) {
        boolean known = args.getPlugin().equals(Licences.NAME);
        check(known && args.getArgsJson().equals("{}"), profile, args.getPlugin(), response);
      }
    }
    if (response.getProblemsCount() == 0 && !request.getValidateOnly()) {
      session = request.getSessionId(); // It replaces another one.
      profiles = request.getProfilesList().stream().map(ProfileConfig::getName)
          .collect(Collectors.toSet());
      heardNanos = System.nanoTime();
    }
    return response.build();
  }

  private static void check(
      boolean valid, ProfileConfig profile, String plugin, ConfigureResponse.Builder response) {
    if (!valid) {
      response.addProblemsBuilder().setProfile(profile.getName()).setPlugin(plugin)
          .setMessage("no such plugin or point, or the plugin takes no arguments");
    }
  }

  private ProbeResponse probe(ProbeRequest request) {
    String about = request.getSessionId();
    if (!about.isEmpty() && about.equals(session)) {
      heardNanos = System.nanoTime();
    }
    boolean shimIsGone = System.nanoTime() - heardNanos > TimeUnit.SECONDS.toNanos(15);
    ProbeResponse.Builder response = ProbeResponse.newBuilder().setInstance(instance)
        .setState(ProbeResponse.State.STATE_READY).setCurrentSessionId(shimIsGone ? "" : session);
    if (draining) {
      response.setState(ProbeResponse.State.STATE_DRAINING).setReason("the host is draining");
    } else if (!about.isEmpty() && !about.equals(session)) {
      response.setState(ProbeResponse.State.STATE_INITIALIZING).setReason("not configured");
    }
    return response.build();
  }

  private EndSessionResponse endSession(EndSessionRequest request) {
    session = request.getSessionId().equals(session) ? "" : session;
    return EndSessionResponse.getDefaultInstance();
  }

  /** No new sessions and, since Probe says so, no new attempts. */
  synchronized void drain() {
    draining = true;
  }

  private void check(CallHeader header, boolean hasPod, int named, int sent) {
    require(!session.isEmpty() && header.getSessionId().equals(session),
        Status.FAILED_PRECONDITION, Reason.REASON_SESSION_UNKNOWN, "another session");
    require(profiles.contains(header.getProfile()),
        Status.FAILED_PRECONDITION, Reason.REASON_NOT_CONFIGURED, "no such profile");
    require(hasPod, "pod is required");
    require(named == sent, "inline_nodes must have " + named + " nodes");
  }

  /** Every node of the request, in order: a host without a cache never searches only some. */
  private FilterResponse filter(FilterRequest request) {
    boolean simulated = request.hasSimulation();
    int named = simulated ? request.getSimulation().getNodesCount()
        : request.getSearch().getNodes().getSlotsCount();
    check(request.getHeader(), request.hasPod(), named, request.getInlineNodesCount());
    require(simulated || request.getSearch().getNumFeasibleNodesToFind() > 0,
        "simulation or search.num_feasible_nodes_to_find is required");
    FilterResponse.Builder response = FilterResponse.newBuilder();
    Map<PluginStatus, Integer> reasons = new LinkedHashMap<>();
    for (InlineNode node : request.getInlineNodesList()) {
      PluginStatus rejection;
      try {
        rejection = Licences.check(request.getPod(), node);
      } catch (NumberFormatException error) {
        String reason = "node " + node.getNode().getName() + ": " + error.getMessage();
        if (!simulated) {
          return response.addAllReasons(reasons.keySet())
              .setError(failure(Code.CODE_ERROR, reason)).build();
        }
        // In a simulation, a plugin that fails rejects the node.
        rejection = failure(Code.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, reason);
      }
      response.addVerdicts(
          rejection == null ? 0 : reasons.computeIfAbsent(rejection, key -> reasons.size() + 1));
    }
    return response.addAllReasons(reasons.keySet()).build();
  }

  private ScoreResponse score(ScoreRequest request) {
    int named = request.getNodes().getSlotsCount();
    check(request.getHeader(), request.hasPod(), named, request.getInlineNodesCount());
    ScoreResponse.Builder response = ScoreResponse.newBuilder();
    try {
      byte[] scores = Licences.scores(request.getInlineNodesList());
      response.addPluginsBuilder().setPlugin(Licences.NAME).setScores(ByteString.copyFrom(scores));
      return response.build();
    } catch (NumberFormatException error) {
      return response.setError(failure(Code.CODE_ERROR, error.getMessage())).build();
    }
  }

  private static PluginStatus failure(Code code, String reason) {
    return PluginStatus.newBuilder().setPlugin(Licences.NAME).setCode(code).addReasons(reason)
        .build();
  }
}

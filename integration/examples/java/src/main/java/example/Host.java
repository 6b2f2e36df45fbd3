package example;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import dev.outboard.handshake.v1.HandshakeRequest;
import dev.outboard.handshake.v1.HandshakeResponse;
import dev.outboard.handshake.v1.HandshakeServiceGrpc;
import dev.outboard.v1beta1.CallError;
import dev.outboard.v1beta1.CallError.Reason;
import dev.outboard.v1beta1.CallHeader;
import dev.outboard.v1beta1.Capability;
import dev.outboard.v1beta1.Code;
import dev.outboard.v1beta1.ConfigProblem;
import dev.outboard.v1beta1.ConfigureRequest;
import dev.outboard.v1beta1.ConfigureResponse;
import dev.outboard.v1beta1.DrainRequest;
import dev.outboard.v1beta1.DrainResponse;
import dev.outboard.v1beta1.FilterRequest;
import dev.outboard.v1beta1.FilterResponse;
import dev.outboard.v1beta1.FilterServiceGrpc;
import dev.outboard.v1beta1.GetHostInfoRequest;
import dev.outboard.v1beta1.GetHostInfoResponse;
import dev.outboard.v1beta1.InlineNode;
import dev.outboard.v1beta1.PluginArgs;
import dev.outboard.v1beta1.PluginHostServiceGrpc;
import dev.outboard.v1beta1.PluginScores;
import dev.outboard.v1beta1.PluginStatus;
import dev.outboard.v1beta1.PointConfig;
import dev.outboard.v1beta1.ProbeRequest;
import dev.outboard.v1beta1.ProbeResponse;
import dev.outboard.v1beta1.ProfileConfig;
import dev.outboard.v1beta1.ScoreRequest;
import dev.outboard.v1beta1.ScoreResponse;
import dev.outboard.v1beta1.ScoreServiceGrpc;
import io.grpc.BindableService;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;
/**
 * A host with the capability INLINE_NODES: it keeps no cluster state, only its configuration, and serves three services.
 *
 * <p>Threading: any thread; this object's lock guards the sessions.
 */
final class Host {
  private static final String CONTRACT = "v1beta1";
  private static final int MAX_SESSIONS = 8;

  private final String instance;
  private final String digest;
  private final long startedMicros = System.currentTimeMillis() * 1000;
  /** Profiles of each session, the least recently used first: shims come and go. */
  private final Map<String, Set<String>> sessions = new LinkedHashMap<>(16, 0.75f, /* accessOrder= */ true);
  private final Set<String> drained = new java.util.HashSet<>();
  private boolean draining;

  Host(String instance, String digest) {
    this.instance = instance;
    this.digest = digest;
  }

  List<BindableService> services() {
    return List.of(new Greeting(), new Plugins(), new Filtering(), new Scoring());
  }

  synchronized void drain() {
    draining = true;
  }

  /** The error of a call. */
  private static final class CallFailed extends RuntimeException {
    final Reason reason;

    CallFailed(Reason reason, String message) {
      super(message);
      this.reason = reason;
    }

    Status status() {
      return switch (reason) {
        case REASON_WRONG_INSTANCE, REASON_SESSION_UNKNOWN, REASON_NOT_CONFIGURED -> Status.FAILED_PRECONDITION;
        case REASON_INVALID -> Status.INVALID_ARGUMENT;
        case REASON_DRAINING -> Status.UNAVAILABLE;
        default -> Status.INTERNAL;
      };
    }
  }

  /** Answers a call; an error is sent as a detail of the status. */
  private static <T> void answer(StreamObserver<T> observer, Supplier<T> call) {
    T response;
    try {
      response = call.get();
    } catch (RuntimeException error) {
      CallFailed failed =
          error instanceof CallFailed known ? known : new CallFailed(Reason.REASON_INTERNAL, String.valueOf(error));
      CallError details =
          CallError.newBuilder().setReason(failed.reason).setMessage(failed.getMessage()).build();
      observer.onError(
          StatusProto.toStatusRuntimeException(
              com.google.rpc.Status.newBuilder()
                  .setCode(failed.status().getCode().value())
                  .setMessage(failed.getMessage())
                  .addDetails(Any.pack(details))
                  .build()));
      return;
    }
    observer.onNext(response);
    observer.onCompleted();
  }

  private synchronized void check(CallHeader header) {
    if (!header.getInstance().equals(instance)) {
      throw new CallFailed(Reason.REASON_WRONG_INSTANCE, "this is instance " + instance);
    }
    Set<String> profiles = sessions.get(header.getSessionId());
    if (profiles == null) {
      throw new CallFailed(Reason.REASON_SESSION_UNKNOWN, "no session " + header.getSessionId());
    }
    if (!profiles.contains(header.getProfile())) {
      throw new CallFailed(Reason.REASON_NOT_CONFIGURED, "no profile " + header.getProfile());
    }
  }

  private static void checkContent(int wanted, int sent) {
    if (wanted != sent) {
      throw new CallFailed(Reason.REASON_INVALID, "inline_nodes has " + sent + " nodes, not " + wanted);
    }
  }

  private final class Greeting extends HandshakeServiceGrpc.HandshakeServiceImplBase {
    @Override
    public void handshake(HandshakeRequest request, StreamObserver<HandshakeResponse> observer) {
      answer(
          observer,
          () ->
              HandshakeResponse.newBuilder()
                  .addContractVersions(CONTRACT)
                  .setInstance(instance)
                  .setBuild("example")
                  .setBuildDigest(digest)
                  .setStartedUnixMicros(startedMicros)
                  .build());
    }
  }

  private final class Plugins extends PluginHostServiceGrpc.PluginHostServiceImplBase {
    @Override
    public void getHostInfo(GetHostInfoRequest request, StreamObserver<GetHostInfoResponse> observer) {
      answer(
          observer,
          () ->
              GetHostInfoResponse.newBuilder()
                  .addCapabilities(Capability.CAPABILITY_INLINE_NODES)
                  .addPlugins(Licences.info())
                  .build());
    }

    @Override
    public void configure(ConfigureRequest request, StreamObserver<ConfigureResponse> observer) {
      answer(observer, () -> configured(request));
    }

    @Override
    public void probe(ProbeRequest request, StreamObserver<ProbeResponse> observer) {
      answer(observer, () -> probed(request.getSessionId()));
    }

    /** This host keeps no attempts, so draining has nothing to wait for. */
    @Override
    public void drain(DrainRequest request, StreamObserver<DrainResponse> observer) {
      synchronized (Host.this) {
        if (sessions.containsKey(request.getSessionId())) {
          drained.add(request.getSessionId());
        }
      }
      answer(observer, DrainResponse::getDefaultInstance);
    }
  }

  private synchronized ConfigureResponse configured(ConfigureRequest request) {
    if (draining) {
      throw new CallFailed(Reason.REASON_DRAINING, "the host is about to exit");
    }
    if (!request.getSessionId().matches("[a-z0-9-]{1,63}")) {
      throw new CallFailed(Reason.REASON_INVALID, "session_id ([a-z0-9-]{1,63}) is required");
    }
    if (drained.contains(request.getSessionId())) {
      throw new CallFailed(Reason.REASON_DRAINING, "the session is draining");
    }
    ConfigureResponse.Builder response = ConfigureResponse.newBuilder();
    for (ProfileConfig profile : request.getProfilesList()) {
      for (PointConfig point : profile.getPointsList()) {
        for (String plugin : point.getPluginsList()) {
          if (!plugin.equals(Licences.NAME) || !Licences.info().getExtensionPointsList().contains(point.getExtensionPoint())) {
            response.addProblems(problem(profile, plugin, "this host has no such plugin at " + point.getExtensionPoint()));
          }
        }
      }
      for (PluginArgs args : profile.getArgsList()) {
        if (!args.getPlugin().equals(Licences.NAME)) {
          response.addProblems(problem(profile, args.getPlugin(), "args for an unknown plugin"));
        } else if (!args.getArgsJson().isEmpty() && !args.getArgsJson().equals("{}")) {
          response.addProblems(problem(profile, args.getPlugin(), "the plugin takes no arguments"));
        }
      }
    }
    if (response.getProblemsCount() > 0) {
      return response.build();
    }
    sessions.put(request.getSessionId(), request.getProfilesList().stream().map(ProfileConfig::getName).collect(Collectors.toSet()));
    while (sessions.size() > MAX_SESSIONS) {
      String oldest = sessions.keySet().iterator().next();
      sessions.remove(oldest);
      drained.remove(oldest);
    }
    return response.build();
  }

  private static ConfigProblem problem(ProfileConfig profile, String plugin, String message) {
    return ConfigProblem.newBuilder().setProfile(profile.getName()).setPlugin(plugin).setMessage(message).build();
  }

  private synchronized ProbeResponse probed(String session) {
    ProbeResponse.Builder response = ProbeResponse.newBuilder().setInstance(instance).setState(ProbeResponse.State.STATE_READY);
    if (draining || drained.contains(session)) {
      response.setState(ProbeResponse.State.STATE_DRAINING).setReason("the host is draining");
    } else if (!session.isEmpty() && sessions.get(session) == null) {
      response.setState(ProbeResponse.State.STATE_INITIALIZING).setReason("not configured");
    }
    return response.build();
  }

  private final class Filtering extends FilterServiceGrpc.FilterServiceImplBase {
    @Override
    public void filter(FilterRequest request, StreamObserver<FilterResponse> observer) {
      answer(
          observer,
          () -> {
            check(request.getHeader());
            boolean hypothetical = request.getSimulatedNodesCount() > 0;
            checkContent(
                hypothetical ? request.getSimulatedNodesCount() : request.getNodes().getSlotsCount(), request.getInlineNodesCount());
            return evaluate(request, hypothetical);
          });
    }
  }

  /** Every node of the request, in order: without a sample and without a start index. */
  private static FilterResponse evaluate(FilterRequest request, boolean hypothetical) {
    FilterResponse.Builder response = FilterResponse.newBuilder();
    byte[] feasible = new byte[(request.getInlineNodesCount() + 7) / 8];
    Map<PluginStatus, Integer> reasons = new LinkedHashMap<>();
    int processed = 0;
    for (InlineNode node : request.getInlineNodesList()) {
      PluginStatus rejection;
      try {
        rejection = Licences.check(request.getPod(), node);
      } catch (NumberFormatException error) {
        PluginStatus.Builder failure =
            PluginStatus.newBuilder()
                .setPlugin(Licences.NAME)
                .addReasons("node " + node.getNode().getName() + ": " + Licences.LICENCES + ": " + error.getMessage());
        if (!hypothetical) {
          response.setError(failure.setCode(Code.CODE_ERROR));
          break;
        }
        rejection = failure.setCode(Code.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE).build(); // A plugin's error rejects the node.
      }
      if (rejection == null) {
        feasible[processed / 8] |= (byte) (1 << (processed % 8));
      } else {
        response.addRejected(reasons.computeIfAbsent(rejection, unused -> reasons.size()));
      }
      ++processed;
    }
    return response
        .setProcessed(processed)
        .setFeasible(ByteString.copyFrom(feasible, 0, (processed + 7) / 8))
        .addAllReasons(reasons.keySet())
        .build();
  }

  private final class Scoring extends ScoreServiceGrpc.ScoreServiceImplBase {
    @Override
    public void score(ScoreRequest request, StreamObserver<ScoreResponse> observer) {
      answer(
          observer,
          () -> {
            check(request.getHeader());
            checkContent(request.getNodes().getSlotsCount(), request.getInlineNodesCount());
            ScoreResponse.Builder response = ScoreResponse.newBuilder();
            try {
              byte[] scores = Licences.scores(request.getInlineNodesList());
              response.addPlugins(PluginScores.newBuilder().setPlugin(Licences.NAME).setScores(ByteString.copyFrom(scores)));
            } catch (NumberFormatException error) {
              response.setError(
                  PluginStatus.newBuilder()
                      .setPlugin(Licences.NAME)
                      .setCode(Code.CODE_ERROR)
                      .addReasons(Licences.PRICE + ": " + error.getMessage()));
            }
            return response.build();
          });
    }
  }
}

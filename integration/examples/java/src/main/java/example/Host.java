package example;

import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import dev.outboard.handshake.v1.HandshakeRequest;
import dev.outboard.handshake.v1.HandshakeResponse;
import dev.outboard.handshake.v1.HandshakeServiceGrpc;
import dev.outboard.v1beta1.*;
import dev.outboard.v1beta1.CallError.Reason;
import io.grpc.BindableService;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import java.util.HashSet;
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
  private final Set<String> ended = new HashSet<>();
  private boolean draining;

  Host(String instance, String digest) {
    this.instance = instance;
    this.digest = digest;
  }

  List<BindableService> services() {
    return List.of(new Greeting(), new Plugins(), new Filtering(), new Scoring());
  }

  /** No new sessions and, since Probe says so, no new attempts. */
  synchronized void drain() {
    draining = true;
  }

  /** The error of a call: the CallError is a detail of the status. */
  private static StatusRuntimeException fail(Reason reason, String message) {
    Status.Code code =
        switch (reason) {
          case REASON_WRONG_INSTANCE, REASON_SESSION_UNKNOWN, REASON_NOT_CONFIGURED -> Status.Code.FAILED_PRECONDITION;
          case REASON_INVALID -> Status.Code.INVALID_ARGUMENT;
          case REASON_DRAINING -> Status.Code.UNAVAILABLE;
          default -> Status.Code.INTERNAL;
        };
    Any error = Any.pack(CallError.newBuilder().setReason(reason).setMessage(message).build());
    return StatusProto.toStatusRuntimeException(
        com.google.rpc.Status.newBuilder().setCode(code.value()).setMessage(message).addDetails(error).build());
  }

  private static <T> void answer(StreamObserver<T> observer, Supplier<T> call) {
    T response;
    try {
      response = call.get();
    } catch (StatusRuntimeException error) {
      observer.onError(error);
      return;
    } catch (RuntimeException error) {
      observer.onError(fail(Reason.REASON_INTERNAL, error.toString()));
      return;
    }
    observer.onNext(response);
    observer.onCompleted();
  }

  private synchronized void check(CallHeader header) {
    Set<String> profiles = sessions.get(header.getSessionId());
    if (profiles == null) {
      throw fail(Reason.REASON_SESSION_UNKNOWN, "no session " + header.getSessionId());
    }
    if (!profiles.contains(header.getProfile())) {
      throw fail(Reason.REASON_NOT_CONFIGURED, "no profile " + header.getProfile());
    }
  }

  private static void checkThat(boolean valid, String message) {
    if (!valid) {
      throw fail(Reason.REASON_INVALID, message);
    }
  }

  private final class Greeting extends HandshakeServiceGrpc.HandshakeServiceImplBase {
    @Override
    public void handshake(HandshakeRequest request, StreamObserver<HandshakeResponse> observer) {
      HandshakeResponse.Builder response = HandshakeResponse.newBuilder().addContractVersions(CONTRACT).setInstance(instance);
      response.setBuild("example").setBuildDigest(digest).setStartedUnixMicros(startedMicros);
      answer(observer, response::build);
    }
  }

  private final class Plugins extends PluginHostServiceGrpc.PluginHostServiceImplBase {
    @Override
    public void getHostInfo(GetHostInfoRequest request, StreamObserver<GetHostInfoResponse> observer) {
      GetHostInfoResponse.Builder response = GetHostInfoResponse.newBuilder().addPlugins(Licences.info());
      answer(observer, response.addCapabilities(Capability.CAPABILITY_INLINE_NODES)::build);
    }

    @Override
    public void configure(ConfigureRequest request, StreamObserver<ConfigureResponse> observer) {
      answer(observer, () -> configured(request));
    }

    @Override
    public void probe(ProbeRequest request, StreamObserver<ProbeResponse> observer) {
      answer(observer, () -> probed(request.getSessionId()));
    }

    /** This host keeps no attempts, so there is nothing to wait for. */
    @Override
    public void endSession(EndSessionRequest request, StreamObserver<EndSessionResponse> observer) {
      synchronized (Host.this) {
        if (sessions.containsKey(request.getSessionId())) {
          ended.add(request.getSessionId());
        }
      }
      answer(observer, EndSessionResponse::getDefaultInstance);
    }

    @Override
    public void drain(DrainRequest request, StreamObserver<DrainResponse> observer) {
      Host.this.drain();
      answer(observer, DrainResponse::getDefaultInstance);
    }
  }

  private synchronized ConfigureResponse configured(ConfigureRequest request) {
    if (!request.getInstance().equals(instance)) {
      throw fail(Reason.REASON_WRONG_INSTANCE, "this is instance " + instance);
    }
    if (draining || ended.contains(request.getSessionId())) {
      throw fail(Reason.REASON_DRAINING, "the host or the session is draining");
    }
    checkThat(request.getSessionId().matches("[a-z0-9-]{1,63}"), "session_id ([a-z0-9-]{1,63}) is required");
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
    if (response.getProblemsCount() > 0 || request.getValidateOnly()) {
      return response.build();
    }
    sessions.put(request.getSessionId(), request.getProfilesList().stream().map(ProfileConfig::getName).collect(Collectors.toSet()));
    while (sessions.size() > MAX_SESSIONS) {
      String oldest = sessions.keySet().iterator().next();
      sessions.remove(oldest);
      ended.remove(oldest);
    }
    return response.build();
  }

  private static ConfigProblem problem(ProfileConfig profile, String plugin, String message) {
    return ConfigProblem.newBuilder().setProfile(profile.getName()).setPlugin(plugin).setMessage(message).build();
  }

  private synchronized ProbeResponse probed(String session) {
    ProbeResponse.Builder response = ProbeResponse.newBuilder().setInstance(instance).setState(ProbeResponse.State.STATE_READY);
    if (draining || ended.contains(session)) {
      response.setState(ProbeResponse.State.STATE_DRAINING).setReason("the host is draining");
    } else if (!session.isEmpty() && sessions.get(session) == null) {
      response.setState(ProbeResponse.State.STATE_INITIALIZING).setReason("not configured");
    }
    return response.build();
  }

  private final class Filtering extends FilterServiceGrpc.FilterServiceImplBase {
    @Override
    public void filter(FilterRequest request, StreamObserver<FilterResponse> observer) {
      answer(observer, () -> filtered(request));
    }
  }

  /** Every node of the request, in order: a host without a cache is never asked to search only some. */
  private FilterResponse filtered(FilterRequest request) {
    check(request.getHeader());
    NodeSearch search = request.getSearch();
    boolean simulated = request.hasSimulation();
    checkThat(simulated || request.hasSearch(), "search or simulation is required");
    checkThat(simulated || search.getNumFeasibleNodesToFind() > 0, "search.num_feasible_nodes_to_find is required");
    int nodes = simulated ? request.getSimulation().getNodesCount() : search.getNodes().getSlotsCount();
    checkThat(request.hasPod(), "pod is required");
    checkThat(request.getInlineNodesCount() == nodes, "inline_nodes must have " + nodes + " nodes");
    FilterResponse.Builder response = FilterResponse.newBuilder();
    Map<PluginStatus, Integer> reasons = new LinkedHashMap<>();
    for (InlineNode node : request.getInlineNodesList()) {
      PluginStatus rejection;
      try {
        rejection = Licences.check(request.getPod(), node);
      } catch (NumberFormatException error) {
        PluginStatus.Builder failure =
            PluginStatus.newBuilder()
                .setPlugin(Licences.NAME)
                .addReasons("node " + node.getNode().getName() + ": " + Licences.LICENCES + ": " + error.getMessage());
        if (!simulated) {
          response.setError(failure.setCode(Code.CODE_ERROR));
          break;
        }
        rejection = failure.setCode(Code.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE).build(); // A plugin's error rejects the node.
      }
      response.addVerdicts(rejection == null ? 0 : reasons.computeIfAbsent(rejection, unused -> reasons.size() + 1));
    }
    return response.addAllReasons(reasons.keySet()).build();
  }

  private final class Scoring extends ScoreServiceGrpc.ScoreServiceImplBase {
    @Override
    public void score(ScoreRequest request, StreamObserver<ScoreResponse> observer) {
      answer(observer, () -> scored(request));
    }
  }

  private ScoreResponse scored(ScoreRequest request) {
    check(request.getHeader());
    int nodes = request.getNodes().getSlotsCount();
    checkThat(request.hasPod(), "pod is required");
    checkThat(request.getInlineNodesCount() == nodes, "inline_nodes must have " + nodes + " nodes");
    ScoreResponse.Builder response = ScoreResponse.newBuilder();
    try {
      ByteString scores = ByteString.copyFrom(Licences.scores(request.getInlineNodesList()));
      return response.addPlugins(PluginScores.newBuilder().setPlugin(Licences.NAME).setScores(scores)).build();
    } catch (NumberFormatException error) {
      String reason = Licences.PRICE + ": " + error.getMessage();
      return response.setError(PluginStatus.newBuilder().setPlugin(Licences.NAME).setCode(Code.CODE_ERROR).addReasons(reason)).build();
    }
  }
}

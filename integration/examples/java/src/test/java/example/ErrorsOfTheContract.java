package example;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import dev.outboard.handshake.v1.HandshakeRequest;
import dev.outboard.handshake.v1.HandshakeServiceGrpc;
import dev.outboard.v1beta1.*;
import dev.outboard.v1beta1.CallError.Reason;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import io.grpc.netty.shaded.io.netty.util.concurrent.DefaultThreadFactory;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * A client in Java reads code and reason of a running host's errors with gRPC's own library: {@code unix:PATH PLUGIN}. A host with
 * a cache is also asked about versions, attempts and objects, and on a stream.
 */
final class ErrorsOfTheContract {
  private static final String SESSION = "errors-of-the-contract";
  private static final String PROFILE = "default-scheduler";

  private final ManagedChannel channel;
  private final PluginHostServiceGrpc.PluginHostServiceBlockingStub host;
  private final String instance;
  private int failures;
  private boolean readsVersions; // A host with ACKS_EVERY_VERSION does not.

  private ErrorsOfTheContract(ManagedChannel channel) {
    this.channel = channel;
    host = PluginHostServiceGrpc.newBlockingStub(channel);
    instance = HandshakeServiceGrpc.newBlockingStub(channel).handshake(HandshakeRequest.getDefaultInstance()).getInstance();
  }

  public static void main(String[] args) throws Exception {
    ManagedChannel channel =
        NettyChannelBuilder.forAddress(new DomainSocketAddress(args[0].substring("unix:".length())))
            .channelType(EpollDomainSocketChannel.class)
            .eventLoopGroup(new EpollEventLoopGroup(1, new DefaultThreadFactory("client", /* daemon= */ true)))
            .overrideAuthority("localhost")
            .usePlaintext()
            .build();
    ErrorsOfTheContract test = new ErrorsOfTheContract(channel);
    test.run(args[1]);
    System.exit(test.failures > 0 ? 1 : 0);
  }

  private void run(String plugin) throws Exception {
    List<Capability> capabilities = host.getHostInfo(GetHostInfoRequest.getDefaultInstance()).getCapabilitiesList();
    boolean cached = !capabilities.contains(Capability.CAPABILITY_INLINE_NODES);
    readsVersions = !capabilities.contains(Capability.CAPABILITY_ACKS_EVERY_VERSION);
    PointConfig point = PointConfig.newBuilder().setExtensionPoint(ExtensionPoint.EXTENSION_POINT_FILTER).addPlugins(plugin).build();
    ConfigureRequest configuration =
        ConfigureRequest.newBuilder()
            .setSessionId(SESSION)
            .setInstance(instance)
            .addProfiles(ProfileConfig.newBuilder().setName(PROFILE).addPoints(point))
            .build();
    ConfigureRequest unnamed = configuration.toBuilder().clearSessionId().build();
    expect("no session id", () -> host.configure(unnamed), Status.Code.INVALID_ARGUMENT, Reason.REASON_INVALID);
    ConfigureRequest misdirected = configuration.toBuilder().setInstance("other").build();
    expect("another instance", () -> host.configure(misdirected), Status.Code.FAILED_PRECONDITION, Reason.REASON_WRONG_INSTANCE);
    expect("before Configure", () -> filter(header()), Status.Code.FAILED_PRECONDITION, Reason.REASON_SESSION_UNKNOWN);
    if (host.configure(configuration).getProblemsCount() > 0) {
      throw new IllegalStateException("the host does not accept the configuration");
    }
    expect("another session", () -> filter(header().setSessionId("other")), Status.Code.FAILED_PRECONDITION, Reason.REASON_SESSION_UNKNOWN);
    StreamObserver<SyncRequest> stream = null;
    if (cached) {
      stream = runCached();
    }
    expect("another profile", () -> filter(header().setProfile("other")), Status.Code.FAILED_PRECONDITION, Reason.REASON_NOT_CONFIGURED);
    if (!cached) {
      expect("neither search nor simulation", () -> filter(header()), Status.Code.INVALID_ARGUMENT, Reason.REASON_INVALID);
    }
    host.endSession(EndSessionRequest.newBuilder().setSessionId(SESSION).build());
    if (capabilities.contains(Capability.CAPABILITY_SINGLE_SESSION)) { // It forgets the session at once.
      expect("an ended session", () -> filter(header()), Status.Code.FAILED_PRECONDITION, Reason.REASON_SESSION_UNKNOWN);
    } else {
      expect("an ended session", () -> host.configure(configuration), Status.Code.UNAVAILABLE, Reason.REASON_DRAINING);
    }
    if (stream != null) {
      stream.onCompleted();
    }
  }

  /** Returns the open stream of the session. */
  private StreamObserver<SyncRequest> runCached() throws Exception {
    SyncRequest begin = SyncRequest.newBuilder().setSessionId(SESSION).setVersion(1).setPhase(SyncRequest.Phase.PHASE_SNAPSHOT_BEGIN).build();
    expectOnStream("a stream without a session", begin.toBuilder().clearSessionId(), Status.Code.INVALID_ARGUMENT, Reason.REASON_INVALID);
    SyncRequest.Builder stranger = begin.toBuilder().setSessionId("other");
    expectOnStream("a stream of another session", stranger, Status.Code.FAILED_PRECONDITION, Reason.REASON_SESSION_UNKNOWN);
    SyncRequest.Builder change = begin.toBuilder().setPhase(SyncRequest.Phase.PHASE_DELTA);
    expectOnStream("a change before the snapshot", change, Status.Code.FAILED_PRECONDITION, Reason.REASON_INVALID);
    if (readsVersions) {
      CallError stale = expect("no snapshot", () -> filter(header()), Status.Code.FAILED_PRECONDITION, Reason.REASON_STALE);
      check("no snapshot: have_version", stale.getHaveVersion(), 0L);
    }

    Answers answers = new Answers();
    StreamObserver<SyncRequest> stream = ClusterStateServiceGrpc.newStub(channel).sync(answers);
    stream.onNext(begin);
    stream.onNext(begin.toBuilder().clearSessionId().setPhase(SyncRequest.Phase.PHASE_SNAPSHOT_END).build());
    check("the snapshot's acknowledgement", answers.first.get(10, TimeUnit.SECONDS).getAck().getVersion(), 1L);
    if (readsVersions) {
      CallError stale = expect("an earlier version", () -> filter(header().setExactVersion(2)), Status.Code.FAILED_PRECONDITION, Reason.REASON_STALE);
      check("an earlier version: have_version", stale.getHaveVersion(), 1L);
      expect("no version", () -> filter(header().clearVersion()), Status.Code.INVALID_ARGUMENT, Reason.REASON_INVALID);
    }
    expect("an unknown attempt", () -> filter(header()), Status.Code.NOT_FOUND, Reason.REASON_ATTEMPT_UNKNOWN);
    PreFilterRequest pod = PreFilterRequest.newBuilder().setHeader(header()).setPodUid("other").build();
    expect("an unknown pod", () -> PreFilterServiceGrpc.newBlockingStub(channel).preFilter(pod), Status.Code.NOT_FOUND, Reason.REASON_OBJECT_UNKNOWN);
    return stream;
  }

  private CallHeader.Builder header() {
    return CallHeader.newBuilder().setSessionId(SESSION).setProfile(PROFILE).setAttemptId(1).setExactVersion(1);
  }

  private FilterResponse filter(CallHeader.Builder header) {
    // A host with a cache waits for the version as long.
    return FilterServiceGrpc.newBlockingStub(channel)
        .withDeadlineAfter(1, TimeUnit.SECONDS)
        .filter(FilterRequest.newBuilder().setHeader(header).build());
  }

  private CallError expect(String what, Supplier<?> call, Status.Code code, Reason reason) throws InvalidProtocolBufferException {
    try {
      check(what, call.get(), reason);
      return CallError.getDefaultInstance();
    } catch (StatusRuntimeException error) {
      return checkError(what, error, code, reason);
    }
  }

  private void expectOnStream(String what, SyncRequest.Builder first, Status.Code code, Reason reason) throws Exception {
    Answers answers = new Answers();
    ClusterStateServiceGrpc.newStub(channel).sync(answers).onNext(first.build());
    checkError(what, answers.error.get(10, TimeUnit.SECONDS), code, reason);
  }

  private CallError checkError(String what, Throwable error, Status.Code code, Reason reason) throws InvalidProtocolBufferException {
    com.google.rpc.Status status = StatusProto.fromThrowable(error);
    check(what + ": code", Status.fromCodeValue(status.getCode()).getCode(), code);
    CallError details = CallError.getDefaultInstance();
    for (Any detail : status.getDetailsList()) {
      if (detail.is(CallError.class)) {
        details = detail.unpack(CallError.class);
      }
    }
    check(what + ": reason", details.getReason(), reason);
    check(what + ": message", status.getMessage(), details.getMessage());
    return details;
  }

  private void check(String what, Object got, Object want) {
    if (!got.equals(want)) {
      System.out.println("FAILED: " + what + ": " + got + ", not " + want);
      ++failures;
    }
  }

  /** The first answer on a stream, and how the stream ended. */
  private static final class Answers implements StreamObserver<SyncResponse> {
    final CompletableFuture<SyncResponse> first = new CompletableFuture<>();
    final CompletableFuture<Throwable> error = new CompletableFuture<>();

    @Override
    public void onNext(SyncResponse response) {
      first.complete(response);
    }

    @Override
    public void onError(Throwable thrown) {
      error.complete(thrown);
    }

    @Override
    public void onCompleted() {
      error.complete(Status.OK.asRuntimeException());
    }
  }
}

package example;

import io.grpc.BindableService;
import io.grpc.Server;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** A plugin host in Java, from the contract alone: {@code --listen unix:PATH}; {instance} in PATH stands for this instance's id. */
final class Main {
  // The limit in inline_node.proto.
  private static final int MAX_MESSAGE_BYTES = 64 << 20;

  private Main() {}

  public static void main(String[] args) throws Exception {
    if (args.length != 2 || !args[0].equals("--listen") || !args[1].startsWith("unix:")) {
      System.err.println("usage: run.sh --listen unix:PATH");
      System.exit(2);
    }
    String instance = "java-" + UUID.randomUUID().toString().substring(0, 18);
    Path path = Path.of(args[1].substring("unix:".length()).replace("{instance}", instance));
    Files.deleteIfExists(path);
    Host host = new Host(instance, digestOfProgram());
    EpollEventLoopGroup loop = new EpollEventLoopGroup(1);
    NettyServerBuilder builder =
        NettyServerBuilder.forAddress(new DomainSocketAddress(path.toString()))
            .channelType(EpollServerDomainSocketChannel.class)
            .bossEventLoopGroup(loop)
            .workerEventLoopGroup(loop)
            .maxInboundMessageSize(MAX_MESSAGE_BYTES)
            // A shim may ping every 10 s, also without calls. By default gRPC would close its connection.
            .permitKeepAliveTime(9, TimeUnit.SECONDS)
            .permitKeepAliveWithoutCalls(true);
    for (BindableService service : host.services()) {
      builder.addService(service);
    }
    Server server = builder.build().start();
    // Only this user may connect.
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-------"));
    System.err.println("instance " + instance + " listens on unix:" + path + " with " + Licences.NAME);
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  host.drain();
                  try {
                    // Calls in flight are answered; this host keeps no attempts.
                    server.shutdown().awaitTermination(5, TimeUnit.SECONDS);
                  } catch (InterruptedException stopping) {
                    Thread.currentThread().interrupt();
                  }
                }));
    server.awaitTermination();
  }

  /** Distinguishes builds. */
  private static String digestOfProgram() throws IOException, NoSuchAlgorithmException {
    Path program = Path.of(Main.class.getProtectionDomain().getCodeSource().getLocation().getPath());
    if (!Files.isRegularFile(program)) {
      return "";
    }
    byte[] hash = MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(program));
    return HexFormat.of().formatHex(hash).substring(0, 40);
  }
}

package example;

import io.grpc.Server;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.TimeUnit;

/**
 * A plugin host in Java, from the contract alone: {@code --listen unix:PATH}; {instance} in PATH
 * stands for this instance's id.
 */
final class Main {
  private Main() {}

  public static void main(String[] args) throws Exception {
    if (args.length != 2 || !args[0].equals("--listen") || !args[1].startsWith("unix:")) {
      System.err.println("usage: run.sh --listen unix:PATH");
      System.exit(2);
    }
    Host host = new Host();
    String path = args[1].substring("unix:".length()).replace("{instance}", host.instance);
    EpollEventLoopGroup loop = new EpollEventLoopGroup(1);
    Server server = NettyServerBuilder.forAddress(new DomainSocketAddress(path))
        .channelType(EpollServerDomainSocketChannel.class)
        .bossEventLoopGroup(loop)
        .workerEventLoopGroup(loop)
        .fallbackHandlerRegistry(host)
        .maxInboundMessageSize(64 << 20) // inline_node.proto; gRPC's default is 4 MiB.
        // A shim may ping every 10 s, also without calls. By default gRPC closes its connection.
        .permitKeepAliveTime(9, TimeUnit.SECONDS)
        .permitKeepAliveWithoutCalls(true)
        .build();
    Files.deleteIfExists(Path.of(path));
    server.start();
    // Only this user may connect.
    Files.setPosixFilePermissions(Path.of(path), PosixFilePermissions.fromString("rw-------"));
    System.err.println("instance " + host.instance + " listens on unix:" + path);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(host, server)));
    server.awaitTermination();
  }

  /** On SIGTERM. A shim probes once a second, and then uses another instance. */
  private static void stop(Host host, Server server) {
    host.drain();
    try {
      Thread.sleep(2000);
      server.shutdown().awaitTermination(5, TimeUnit.SECONDS);
    } catch (InterruptedException stopping) {
      Thread.currentThread().interrupt();
    }
  }
}

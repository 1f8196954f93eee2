// The two gRPC servers of a node.
#include "server/rpc/servers.h"

#include <chrono>
#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/resource_quota.h>
#include <utility>

#include "server/rpc/channel.h"

namespace gyre {
namespace {

constexpr int kThreadsMax = 64;
constexpr int kStreamsPerConnectionMax = 4096;
constexpr int kHandshakeMs = 10'000;            // for TLS and the first bytes of HTTP/2
constexpr int kIdleConnectionMs = 10 * 60'000;  // without a call
// For what clients have under way. Streams of peers never end by themselves.
constexpr std::chrono::milliseconds kStopPatience{1000};

}  // namespace

absl::Status RpcServers::Listening::Open(const std::string& address, const Options& options,
                                         RpcCounters& counters,
                                         std::initializer_list<grpc::Service*> services) {
  auto listening = Acceptor::Listen(address, options.connections_max, counters.connections_refused);
  if (!listening.ok()) return listening.status();
  acceptor = *std::move(listening);
  grpc::ServerBuilder builder;
  auto handler = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      options.credentials.MakeForServer());
  for (grpc::Service* service : services) builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.SetMaxSendMessageSize(kMessageBytesMax);
  builder.SetResourceQuota(
      grpc::ResourceQuota("gyred").Resize(options.network_bytes).SetMaxThreads(kThreadsMax));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnectionMax);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // also where a stream waits for long
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);        // peers ping every second
  server = builder.BuildAndStart();
  if (server == nullptr) return absl::UnavailableError("gRPC cannot serve on " + address);
  acceptor->Start(std::move(handler));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RpcServers>> RpcServers::Start(Backend& backend, const Options& options) {
  std::unique_ptr<RpcServers> servers(new RpcServers(backend));
  absl::Status status =
      servers->peer_port_.Open(options.peer_address, options, backend.counters, {&servers->peers_});
  if (!status.ok()) return status;
  status = servers->client_port_.Open(options.client_address, options, backend.counters,
                                      {&servers->kv_, &servers->admin_});
  if (!status.ok()) return status;
  servers->parked_ = std::make_unique<ParkedPoller>();
  servers->SetServing(false);
  return servers;
}

void RpcServers::SetServing(bool serving) {
  if (auto* health = client_port_.server->GetHealthCheckService()) health->SetServingStatus(serving);
}

void RpcServers::Stop() {
  // Or the servers would wait for them for ever.
  kv_.EndCalls();
  admin_.EndCalls();
  parked_.reset();
  const auto now = std::chrono::system_clock::now();
  for (const auto& [port, deadline] :
       {std::pair(&client_port_, now + kStopPatience), std::pair(&peer_port_, now)}) {
    if (port->acceptor != nullptr) port->acceptor->Stop();
    if (port->server == nullptr) continue;
    port->server->Shutdown(deadline);
    port->server->Wait();
    port->server.reset();
    port->acceptor.reset();
  }
}

}  // namespace gyre

// The two gRPC servers of a node.
#include "server/rpc/servers.h"

#include <chrono>
#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <grpcpp/resource_quota.h>
#include <utility>

#include "server/rpc/channel.h"

namespace gyre {
namespace {

constexpr size_t kQuotaBytes = size_t{512} << 20;
constexpr int kThreadsMax = 64;
constexpr int kStreamsPerConnectionMax = 4096;
// For what clients have under way. Streams of peers never end by themselves.
constexpr std::chrono::milliseconds kStopPatience{1000};

absl::StatusOr<std::unique_ptr<grpc::Server>> Listen(
    const std::string& address, const std::shared_ptr<grpc::ServerCredentials>& credentials,
    std::initializer_list<grpc::Service*> services) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, credentials, &port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.SetMaxSendMessageSize(kMessageBytesMax);
  builder.SetResourceQuota(grpc::ResourceQuota("gyred").Resize(kQuotaBytes).SetMaxThreads(kThreadsMax));
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second process on the port must fail
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnectionMax);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // also where a stream waits for long
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);        // peers ping every second
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::UnavailableError(
        "cannot listen on " + address +
        ": is the port in use, or the address not of this machine? Change it or stop the other "
        "process");
  }
  return server;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServers>> RpcServers::Start(Backend& backend, const Options& options) {
  std::unique_ptr<RpcServers> servers(new RpcServers(backend));
  auto peer_server = Listen(options.peer_address, options.credentials.MakeForServer(), {&servers->peers_});
  if (!peer_server.ok()) return peer_server.status();
  servers->peer_server_ = *std::move(peer_server);
  auto client_server =
      Listen(options.client_address, options.credentials.MakeForServer(), {&servers->kv_, &servers->admin_});
  if (!client_server.ok()) return client_server.status();
  servers->client_server_ = *std::move(client_server);
  servers->parked_ = std::make_unique<ParkedPoller>();
  servers->SetServing(false);
  return servers;
}

void RpcServers::SetServing(bool serving) {
  if (auto* health = client_server_->GetHealthCheckService()) health->SetServingStatus(serving);
}

void RpcServers::Stop() {
  // Or the servers would wait for them for ever.
  kv_.EndCalls();
  admin_.EndCalls();
  parked_.reset();
  const auto now = std::chrono::system_clock::now();
  for (const auto& [server, deadline] :
       {std::pair(&client_server_, now + kStopPatience), std::pair(&peer_server_, now)}) {
    if (*server == nullptr) continue;
    (*server)->Shutdown(deadline);
    (*server)->Wait();
    server->reset();
  }
}

}  // namespace gyre

// The public service.
#include "server/rpc/kv_service.h"

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/core/coordinator_ops.h"
#include "server/rpc/convert_kv.h"
#include "server/rpc/session.h"
#include "server/rpc/status.h"
#include "server/rpc/topology.h"
#include "server/rpc/unary_calls.h"

namespace gyre {
namespace {

constexpr char kAcksTrailer[] = "gyre-acknowledgements-bin";

}  // namespace

Micros TimeoutOf(const grpc::CallbackServerContext& context) {
  using std::chrono::milliseconds;
  const auto left =
      std::chrono::duration_cast<milliseconds>(context.deadline() - std::chrono::system_clock::now());
  const bool bounded = left < std::chrono::hours(24);
  return ServerTimeout(bounded ? std::max<int64_t>(left.count(), 1) : 0);
}

KvService::KvService(Backend& backend)
    : backend_(backend), unary_(std::make_shared<UnaryCalls>()), unary_number_(backend.calls.Add(unary_)) {}

KvService::~KvService() { backend_.calls.Remove(unary_number_); }

void KvService::EndCalls() { unary_->End(); }

// The lane answers every call by its deadline, and EndCalls what it left, so that no reactor waits for ever;
// a client that went away is answered too, and gRPC drops it.
template <typename Result, typename Request, typename Reply>
grpc::ServerUnaryReactor* KvService::Push(grpc::CallbackServerContext* context, const Request& request,
                                          Reply* reply) {
  backend_.counters.unary_calls.fetch_add(1, std::memory_order_relaxed);
  absl::StatusOr<Call> call = ToCall(Request(request));
  if (!call.ok()) return Finished(context, call.status());
  if (absl::Status status = CheckRights(backend_.access.RightsOf(*context), *call); !status.ok()) {
    backend_.counters.calls_denied.fetch_add(1, std::memory_order_relaxed);
    return Finished(context, status);
  }
  backend_.counters.hot_keys.Note(*call);
  const Micros timeout = TimeoutOf(*context);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto done = [this, context, reactor, reply](CallResult result) {
    if (result.status.ok()) {
      FromResult(std::get<Result>(std::move(result.result)), result.layout_epoch, *reply);
    } else {
      backend_.counters.calls_failed.fetch_add(1, std::memory_order_relaxed);
      if (const std::optional<Acks> acks = AcksOf(result.status)) {
        v1::Acknowledgements wire;
        FromAcks(*acks, wire);
        context->AddTrailingMetadata(kAcksTrailer, wire.SerializeAsString());
      }
    }
    reactor->Finish(ToGrpc(result.status));
  };
  const std::optional<uint32_t> place = unary_->Add(done, std::is_same_v<Result, WriteResult>);
  if (!place) {
    reactor->Finish(ToGrpc(UnaryCalls::ShuttingDown()));
    return reactor;
  }
  backend_.lane.Push(ClientCall{Calls::TicketFor(unary_number_, *place), *std::move(call),
                                backend_.clock.Read().steady + timeout});
  return reactor;
}

grpc::ServerUnaryReactor* KvService::Put(grpc::CallbackServerContext* context, const v1::PutRequest* request,
                                         v1::PutReply* reply) {
  return Push<WriteResult>(context, *request, reply);
}

grpc::ServerUnaryReactor* KvService::Get(grpc::CallbackServerContext* context, const v1::GetRequest* request,
                                         v1::GetReply* reply) {
  return Push<GetResult>(context, *request, reply);
}

grpc::ServerUnaryReactor* KvService::Delete(grpc::CallbackServerContext* context,
                                            const v1::DeleteRequest* request, v1::DeleteReply* reply) {
  return Push<WriteResult>(context, *request, reply);
}

grpc::ServerUnaryReactor* KvService::Scan(grpc::CallbackServerContext* context,
                                          const v1::ScanRequest* request, v1::ScanReply* reply) {
  return Push<ScanResult>(context, *request, reply);
}

grpc::ServerUnaryReactor* KvService::Topology(grpc::CallbackServerContext* context,
                                              const v1::TopologyRequest*, v1::TopologyReply* reply) {
  FillTopology(backend_, *reply->mutable_topology());
  return Finished(context, absl::OkStatus());
}

grpc::ServerBidiReactor<v1::SessionBatch, v1::SessionReplies>* KvService::Session(
    grpc::CallbackServerContext* context) {
  return Session::Start(backend_, backend_.access.RightsOf(*context)).get();
}

}  // namespace gyre

// The public service.
#include "server/rpc/kv_service.h"

#include <absl/container/flat_hash_map.h>
#include <absl/functional/any_invocable.h>
#include <utility>
#include <vector>

#include "server/rpc/convert_kv.h"
#include "server/rpc/session.h"
#include "server/rpc/status.h"
#include "server/rpc/topology.h"

namespace gyre {

// All unary calls that wait for the lane.
class UnaryCalls : public Waiter {
 public:
  using Done = std::function<void(CallResult)>;

  uint32_t Add(Done done) {
    absl::MutexLock lock(&mutex_);
    waiting_[next_] = std::move(done);
    return next_++;
  }

  void Answered(std::vector<Outbox::Reply> replies) override {
    for (Outbox::Reply& reply : replies) {
      Done done;
      {
        absl::MutexLock lock(&mutex_);
        const auto it = waiting_.find(Calls::PlaceOf(reply.ticket));
        if (it == waiting_.end()) continue;
        done = std::move(it->second);
        waiting_.erase(it);
      }
      done(std::move(reply.result));
    }
  }

 private:
  absl::Mutex mutex_;
  uint32_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint32_t, Done> waiting_ ABSL_GUARDED_BY(mutex_);
};

KvService::KvService(Backend& backend)
    : backend_(backend), unary_(std::make_shared<UnaryCalls>()), unary_number_(backend.calls.Add(unary_)) {}

KvService::~KvService() { backend_.calls.Remove(unary_number_); }

// The lane answers every call by its deadline, so that no reactor is left waiting; a client that went away is
// answered too, and gRPC drops it.
template <typename Result, typename Request, typename Reply>
grpc::ServerUnaryReactor* KvService::Push(grpc::CallbackServerContext* context, const Request& request,
                                          Reply* reply) {
  backend_.counters.unary_calls.fetch_add(1, std::memory_order_relaxed);
  absl::StatusOr<Call> call = ToCall(Request(request));
  if (!call.ok()) return Finished(context, call.status());
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(context->deadline() -
                                                                          std::chrono::system_clock::now());
  const bool bounded = context->deadline() < std::chrono::system_clock::now() + std::chrono::hours(24);
  const Micros timeout = ServerTimeout(bounded ? std::max<int64_t>(left.count(), 1) : 0);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const uint32_t place = unary_->Add([this, reactor, reply](CallResult result) {
    if (result.status.ok()) {
      FromResult(std::get<Result>(std::move(result.result)), result.layout_epoch, *reply);
    } else {
      backend_.counters.calls_failed.fetch_add(1, std::memory_order_relaxed);
    }
    reactor->Finish(ToGrpc(result.status));
  });
  backend_.lane.Push(ClientCall{Calls::TicketFor(unary_number_, place), *std::move(call),
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
    grpc::CallbackServerContext*) {
  return Session::Start(backend_).get();
}

}  // namespace gyre

// The public service.
#include "server/rpc/kv_service.h"

#include <absl/container/flat_hash_map.h>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/core/coordinator_ops.h"
#include "server/rpc/convert_kv.h"
#include "server/rpc/session.h"
#include "server/rpc/status.h"
#include "server/rpc/topology.h"

namespace gyre {

// All unary calls that wait for the lane.
class UnaryCalls : public Waiter {
 public:
  using Done = std::function<void(CallResult)>;

  // Where the answer goes, or nullopt once ended.
  std::optional<uint32_t> Add(Done done, bool is_write) {
    absl::MutexLock lock(&mutex_);
    if (ended_) return std::nullopt;
    waiting_[next_] = {std::move(done), is_write};
    return next_++;
  }

  // Answers all that wait, and takes no more: nobody is left who would.
  void End() {
    absl::flat_hash_map<uint32_t, Waiting> left;
    {
      absl::MutexLock lock(&mutex_);
      ended_ = true;
      left.swap(waiting_);
    }
    for (auto& [place, waiting] : left) {
      waiting.done(
          {.status = waiting.is_write ? OutcomeUnknown("this node is shutting down") : ShuttingDown()});
    }
  }

  static absl::Status ShuttingDown() { return absl::UnavailableError("this node is shutting down"); }

  void Answered(std::vector<Outbox::Reply> replies) override {
    for (Outbox::Reply& reply : replies) {
      Done done;
      {
        absl::MutexLock lock(&mutex_);
        const auto it = waiting_.find(Calls::PlaceOf(reply.ticket));
        if (it == waiting_.end()) continue;
        done = std::move(it->second.done);
        waiting_.erase(it);
      }
      done(std::move(reply.result));
    }
  }

 private:
  struct Waiting {
    Done done;
    bool is_write = false;
  };

  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint32_t, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
};

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
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(context->deadline() -
                                                                          std::chrono::system_clock::now());
  const bool bounded = context->deadline() < std::chrono::system_clock::now() + std::chrono::hours(24);
  const Micros timeout = ServerTimeout(bounded ? std::max<int64_t>(left.count(), 1) : 0);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto done = [this, reactor, reply](CallResult result) {
    if (result.status.ok()) {
      FromResult(std::get<Result>(std::move(result.result)), result.layout_epoch, *reply);
    } else {
      backend_.counters.calls_failed.fetch_add(1, std::memory_order_relaxed);
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
    grpc::CallbackServerContext*) {
  return Session::Start(backend_).get();
}

}  // namespace gyre

// The public service: unary calls and sessions, each pushed to the lane and answered when it replies.
#pragma once

#include <memory>

#include "proto/kv.grpc.pb.h"
#include "server/rpc/backend.h"
#include "server/rpc/unary_calls.h"

namespace gyre {

// What is left of a unary call's deadline, a little less, so that the answer still arrives in time.
Micros TimeoutOf(const grpc::CallbackServerContext& context);

class KvService : public v1::Kv::CallbackService {
 public:
  explicit KvService(Backend& backend);
  ~KvService() override;

  // To be called when the lane has ended: answers the unary calls that it left, and refuses those that still
  // come.
  void EndCalls();

  grpc::ServerUnaryReactor* Put(grpc::CallbackServerContext* context, const v1::PutRequest* request,
                                v1::PutReply* reply) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const v1::GetRequest* request,
                                v1::GetReply* reply) override;
  grpc::ServerUnaryReactor* Delete(grpc::CallbackServerContext* context, const v1::DeleteRequest* request,
                                   v1::DeleteReply* reply) override;
  grpc::ServerUnaryReactor* Scan(grpc::CallbackServerContext* context, const v1::ScanRequest* request,
                                 v1::ScanReply* reply) override;
  grpc::ServerUnaryReactor* Topology(grpc::CallbackServerContext* context, const v1::TopologyRequest* request,
                                     v1::TopologyReply* reply) override;
  grpc::ServerBidiReactor<v1::SessionBatch, v1::SessionReplies>* Session(
      grpc::CallbackServerContext* context) override;

 private:
  template <typename Result, typename Request, typename Reply>
  grpc::ServerUnaryReactor* Push(grpc::CallbackServerContext* context, const Request& request, Reply* reply);

  Backend& backend_;
  std::shared_ptr<UnaryCalls> unary_;
  uint64_t unary_number_;
};

}  // namespace gyre

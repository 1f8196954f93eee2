// The operators' service: what the cluster looks like, keyspaces, and a node's own sums and rows.
#pragma once

#include <atomic>
#include <memory>

#include "proto/admin.grpc.pb.h"
#include "server/rpc/backend.h"
#include "server/rpc/unary_calls.h"

namespace gyre {

class AdminService : public v1::Admin::CallbackService {
 public:
  explicit AdminService(Backend& backend)
      : backend_(backend), unary_(std::make_shared<UnaryCalls>()), unary_number_(backend.calls.Add(unary_)) {}
  ~AdminService() override { backend_.calls.Remove(unary_number_); }

  // Answers the calls that still wait for the lane, which answers nothing any more.
  void EndCalls() { unary_->End(); }

  grpc::ServerUnaryReactor* ClusterStatus(grpc::CallbackServerContext* context,
                                          const v1::ClusterStatusRequest* request,
                                          v1::ClusterStatusReply* reply) override;
  grpc::ServerUnaryReactor* Locate(grpc::CallbackServerContext* context, const v1::LocateRequest* request,
                                   v1::LocateReply* reply) override;
  grpc::ServerUnaryReactor* CreateKeyspace(grpc::CallbackServerContext* context,
                                           const v1::CreateKeyspaceRequest* request,
                                           v1::KeyspaceReply* reply) override;
  grpc::ServerUnaryReactor* SetKeyspace(grpc::CallbackServerContext* context,
                                        const v1::SetKeyspaceRequest* request,
                                        v1::KeyspaceReply* reply) override;
  grpc::ServerUnaryReactor* DropKeyspace(grpc::CallbackServerContext* context,
                                         const v1::DropKeyspaceRequest* request,
                                         v1::KeyspaceReply* reply) override;
  // admin_service_moves.cc
  grpc::ServerUnaryReactor* Plan(grpc::CallbackServerContext* context, const v1::PlanRequest* request,
                                 v1::PlanReply* reply) override;
  grpc::ServerUnaryReactor* Apply(grpc::CallbackServerContext* context, const v1::ApplyRequest* request,
                                  v1::ApplyReply* reply) override;
  grpc::ServerUnaryReactor* AbortMove(grpc::CallbackServerContext* context,
                                      const v1::AbortMoveRequest* request, v1::ApplyReply* reply) override;
  grpc::ServerUnaryReactor* Moves(grpc::CallbackServerContext* context, const v1::MovesRequest* request,
                                  v1::MovesReply* reply) override;
  grpc::ServerUnaryReactor* ControlMoves(grpc::CallbackServerContext* context,
                                         const v1::ControlMovesRequest* request,
                                         v1::ControlMovesReply* reply) override;
  grpc::ServerUnaryReactor* Digests(grpc::CallbackServerContext* context, const v1::DigestsRequest* request,
                                    v1::DigestsReply* reply) override;
  grpc::ServerUnaryReactor* Repair(grpc::CallbackServerContext* context, const v1::RepairRequest* request,
                                   v1::RepairReply* reply) override;
  grpc::ServerUnaryReactor* NodeDump(grpc::CallbackServerContext* context, const v1::NodeDumpRequest* request,
                                     v1::NodeDumpReply* reply) override;
  grpc::ServerUnaryReactor* NodeVerify(grpc::CallbackServerContext* context,
                                       const v1::NodeVerifyRequest* request,
                                       v1::NodeVerifyReply* reply) override;
  grpc::ServerUnaryReactor* Hints(grpc::CallbackServerContext* context, const v1::HintsRequest* request,
                                  v1::HintsReply* reply) override;
  grpc::ServerUnaryReactor* NodeStats(grpc::CallbackServerContext* context,
                                      const v1::NodeStatsRequest* request,
                                      v1::NodeStatsReply* reply) override;
  grpc::ServerBidiReactor<v1::BackupRequest, v1::BackupReply>* Backup(
      grpc::CallbackServerContext* context) override;

 private:
  grpc::ServerUnaryReactor* ChangeMembers(grpc::CallbackServerContext* context, LayoutChange::What what,
                                          v1::ApplyReply* reply);
  template <typename What>
  grpc::ServerUnaryReactor* Change(grpc::CallbackServerContext* context, What what, std::string keyspace,
                                   v1::KeyspaceReply* reply);
  grpc::ServerUnaryReactor* OnDisk(grpc::CallbackServerContext* context,
                                   std::function<absl::Status(Store&)> job);
  grpc::ServerUnaryReactor* OnLane(grpc::CallbackServerContext* context, std::function<void()> fill,
                                   const std::function<Input(Ticket, Micros deadline)>& ask);

  Backend& backend_;
  std::shared_ptr<UnaryCalls> unary_;
  uint64_t unary_number_;
  std::atomic<bool> backup_under_way_ = false;
};

}  // namespace gyre

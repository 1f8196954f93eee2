// Tells other nodes about membership.
#include "server/rpc/teller.h"

#include <chrono>
#include <utility>

#include "server/rpc/channel.h"
#include "server/rpc/convert_control.h"

namespace gyre {
namespace {

constexpr std::chrono::seconds kDeadline{2};

}  // namespace

struct Teller::Telling {
  grpc::ClientContext context;
  v1::ControlMessage message;
  v1::ControlReceipt receipt;
  std::shared_ptr<v1::Peer::Stub> stub;
};

void Teller::Tell(const std::string& address, const control::Message& message) {
  auto telling = std::make_shared<Telling>();
  std::vector<std::shared_ptr<Telling>> ended;  // die outside the lock
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_ || under_way_ >= kUnderWayMax) return;
    const std::shared_ptr<grpc::ChannelCredentials> credentials = credentials_.ForChannels();
    if (stubs_.size() >= kStubsMax || credentials != used_) stubs_.clear();
    used_ = credentials;
    std::shared_ptr<v1::Peer::Stub>& stub = stubs_[address];
    if (stub == nullptr) stub = v1::Peer::NewStub(OpenChannel(address, credentials));
    telling->stub = stub;
    ended.swap(ended_);
    ++under_way_;
  }
  FromControl(message, telling->message);
  telling->context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  telling->stub->async()->Tell(&telling->context, &telling->message, &telling->receipt,
                               [this, telling](const grpc::Status&) mutable {
                                 absl::MutexLock lock(&mutex_);
                                 ended_.push_back(std::move(telling));
                                 --under_way_;
                               });
}

void Teller::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return under_way_ == 0; };
  mutex_.Await(absl::Condition(&none));
  ended_.clear();
}

}  // namespace gyre

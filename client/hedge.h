// Hedged reads: when one node is slow to answer, a second is asked too. Internal to the SDK.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "client/call.h"
#include "client/types.h"

namespace gyre {
inline namespace sdk {

// How many hedges there may be. Threads: any.
class HedgeBudget {
 public:
  // REQUIRES: 0 < each_read <= 1.
  explicit HedgeBudget(double each_read) : each_read_(each_read) {}

  // A read begins: it earns a part of a hedge.
  void Earn();
  // Takes one hedge, if there is one left.
  bool Spend();

 private:
  static constexpr double kSavedMax = 10;  // so that a quiet hour does not pay for a storm

  const double each_read_;
  std::mutex mutex_;
  double saved_ = 1;  // guarded by mutex_
};

struct Hedging {
  std::chrono::milliseconds after{0};  // 0: none
  std::shared_ptr<HedgeBudget> budget;
};

// Makes one get, hedged: the first good answer counts, and the last error when there is none.
void StartHedgedGet(const std::shared_ptr<Connection>& connection, GetRequest request,
                    Call::Settings settings, const Hedging& hedging,
                    std::function<void(absl::StatusOr<GetResult>)> done);

}  // namespace sdk
}  // namespace gyre

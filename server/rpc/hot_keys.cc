// Counts sampled keys in a fixed number of places.
#include "server/rpc/hot_keys.h"

#include <algorithm>
#include <tuple>

namespace gyre {
namespace {

// Whether the nth call is of the sample: by chance, so that no rhythm of a client can hide a key.
bool IsSampled(uint64_t n) {
  n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9;
  n = (n ^ (n >> 27)) * 0x94d049bb133111eb;
  return (n ^ (n >> 31)) % HotKeys::kSampleEvery == 0;
}

}  // namespace

void HotKeys::Note(const Call& call) {
  if (!IsSampled(calls_.fetch_add(1, std::memory_order_relaxed))) return;
  std::visit(
      [this](const auto& one) {
        if constexpr (requires { one.key; }) Add(one.keyspace, one.key);
      },
      call);
}

void HotKeys::Add(const std::string& keyspace, const std::string& key) {
  absl::MutexLock lock(&mutex_);
  ++sampled_;
  Key name(keyspace, key);
  const auto place = counts_.find(name);
  if (place != counts_.end()) {
    ++place->second.calls;
  } else if (counts_.size() < kPlaces) {
    counts_.emplace(std::move(name), Count{.calls = 1});
  } else {
    // It takes the place of the least, and may have been there before as often as that.
    const auto least = std::min_element(counts_.begin(), counts_.end(), [](const auto& a, const auto& b) {
      return a.second.calls < b.second.calls;
    });
    const uint64_t before = least->second.calls;
    counts_.erase(least);
    counts_.emplace(std::move(name), Count{.calls = before + 1, .too_many = before});
  }
  if (--until_halved_ == 0) Halve();
}

void HotKeys::Halve() {
  until_halved_ = kHalveAfter;
  sampled_ /= 2;
  for (auto& [key, count] : counts_) {
    count.calls /= 2;
    count.too_many /= 2;
  }
}

HotKeys::Report HotKeys::Look() const {
  Report report;
  {
    absl::MutexLock lock(&mutex_);
    report.calls = sampled_ * kSampleEvery;
    for (const auto& [key, count] : counts_) {
      report.keys.push_back({.keyspace = key.first,
                             .key = key.second,
                             .calls = count.calls * kSampleEvery,
                             .too_many = count.too_many * kSampleEvery});
    }
  }
  std::sort(report.keys.begin(), report.keys.end(), [](const Hot& a, const Hot& b) {
    return std::tie(b.calls, a.keyspace, a.key) < std::tie(a.calls, b.keyspace, b.key);
  });
  return report;
}

}  // namespace gyre

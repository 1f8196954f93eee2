// Mixes and distributions.
#include "client/cli/workload.h"

#include <cassert>
#include <cmath>

namespace gyre::cli {
namespace {

constexpr double kExponent = 0.99;  // as YCSB's

double Density(double x) { return std::pow(x, -kExponent); }

}  // namespace

Zipf::Zipf(uint64_t n)
    : n_(n),
      first_(Integral(1.5) - 1),
      last_(Integral(static_cast<double>(n) + 0.5)),
      near_(2 - InverseIntegral(Integral(2.5) - Density(2))) {
  assert(n >= 1);
}

double Zipf::Integral(double x) const { return std::expm1((1 - kExponent) * std::log(x)) / (1 - kExponent); }

double Zipf::InverseIntegral(double x) const {
  return std::exp(std::log1p(x * (1 - kExponent)) / (1 - kExponent));
}

uint64_t Zipf::Draw(Dice& dice) const {
  while (true) {
    const double u = last_ + dice.Unit() * (first_ - last_);
    const double x = InverseIntegral(u);
    const auto rank = static_cast<uint64_t>(std::fmin(std::fmax(x + 0.5, 1), static_cast<double>(n_)));
    const auto k = static_cast<double>(rank);
    if (k - x <= near_ || u >= Integral(k + 0.5) - Density(k)) return rank;
  }
}

Operation Workload::Choose(Dice& dice) const {
  const double at = dice.Unit();
  if (at < reads) return Operation::kRead;
  if (at < reads + updates) return Operation::kUpdate;
  if (at < reads + updates + inserts) return Operation::kInsert;
  return Operation::kReadModifyWrite;
}

Workload WorkloadOf(const std::string& name) {
  if (name == "put") return {.name = name, .updates = 1};
  if (name == "get") return {.name = name, .reads = 1};
  if (name == "mixed") return {.name = name, .reads = .5, .updates = .5};
  if (name == "a") return {.name = name, .reads = .5, .updates = .5, .distribution = Distribution::kZipfian};
  if (name == "b")
    return {.name = name, .reads = .95, .updates = .05, .distribution = Distribution::kZipfian};
  if (name == "c") return {.name = name, .reads = 1, .distribution = Distribution::kZipfian};
  if (name == "d") return {.name = name, .reads = .95, .inserts = .05, .distribution = Distribution::kLatest};
  assert(name == "f");
  return {.name = name, .reads = .5, .distribution = Distribution::kZipfian};
}

KeyChooser::KeyChooser(Distribution distribution, uint64_t keys)
    : distribution_(distribution), keys_(keys), zipf_(keys) {}

uint64_t KeyChooser::Choose(Dice& dice, uint64_t newest) const {
  switch (distribution_) {
    case Distribution::kUniform:
      return dice.Bits() % newest;
    case Distribution::kZipfian:
      return Mix(zipf_.Draw(dice)) % keys_;
    case Distribution::kLatest:
      return newest - zipf_.Draw(dice);
  }
  return 0;
}

}  // namespace gyre::cli

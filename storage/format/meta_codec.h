// The bytes of the small facts a node keeps beside its rows.
#pragma once

#include <absl/status/statusor.h>
#include <string>
#include <string_view>

#include "storage/causal/actor_clock.h"
#include "storage/causal/stable_cut.h"

namespace gyre {

// Keys of Table::kMeta.
constexpr std::string_view kMetaActor = "actor";  // ActorState
constexpr std::string_view kMetaOwner = "owner";  // the node id (8 bytes, big-endian) the store belongs to
constexpr std::string_view kMetaFilling =
    "filling";  // there while the node fills a store that was lost; empty
constexpr std::string_view kMetaRebuilt =
    "rebuilt";  // when the store was made from a damaged one: milliseconds since 1970 (8 bytes, big-endian)
constexpr std::string_view kMetaMembership = "cluster/";  // prefix: what server/core/membership persists

constexpr std::string_view kMetaStableCut = "stable-cut";  // CutMarks
constexpr std::string_view kMetaMoves = "moves";           // MoveState (server/core/movement_task.h)

std::string EncodeActorState(const ActorState& state);
absl::StatusOr<ActorState> DecodeActorState(std::string_view bytes);
std::string EncodeCutMarks(const CutMarks& marks);
absl::StatusOr<CutMarks> DecodeCutMarks(std::string_view bytes);

}  // namespace gyre

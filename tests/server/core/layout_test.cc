// Layouts: what a digest sees, what keyspaces may be, how one layout follows from another, and their bytes.
#include "server/core/layout.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "ring/balanced.h"
#include "server/core/layout_codec.h"

namespace gyre {
namespace {

using How = ReplicaCount::How;

Layout Three() { return FirstLayout({{NodeId{3}, "c", 1}, {NodeId{1}, "a", 1}, {NodeId{2}, "b", 2}}); }

KeyspaceSpec Named(std::string name) { return {.name = std::move(name), .r = {}, .w = {}}; }

// One that is not the first of its line.
Layout Later(const std::function<void(Layout&)>& edit) {
  Layout layout = Three();
  layout.epoch = 5;
  layout.base_digest = 77;
  edit(layout);
  return layout;
}

absl::StatusCode Code(const absl::StatusOr<Layout>& layout) { return layout.status().code(); }

TEST(CountOf, Table) {
  const struct {
    ReplicaCount need;
    int n;
    int count;
  } rows[] = {
      {{How::kQuorum, 0}, 1, 1}, {{How::kQuorum, 0}, 2, 2}, {{How::kQuorum, 0}, 3, 2},
      {{How::kQuorum, 0}, 4, 3}, {{How::kQuorum, 0}, 5, 3}, {{How::kQuorum, 0}, 8, 5},
      {{How::kOne, 0}, 1, 1},    {{How::kOne, 0}, 8, 1},    {{How::kAll, 0}, 1, 1},
      {{How::kAll, 0}, 8, 8},    {{How::kCount, 1}, 3, 1},  {{How::kCount, 3}, 3, 3},
      {{How::kCount, 4}, 3, 0},  {{How::kCount, 0}, 3, 0},  {{How::kCount, -1}, 3, 0},
      {{How::kAll, 0}, 0, 0},    {{How::kOne, 0}, 0, 0},    {{How::kCount, int64_t{1} << 32 | 1}, 3, 0},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(CountOf(row.need, row.n), row.count)
        << static_cast<int>(row.need.how) << " " << row.need.count << " of " << row.n;
  }
}

TEST(CheckKeyspace, NamesTheField) {
  const auto field = [](const std::function<void(KeyspaceSpec&)>& edit) {
    KeyspaceSpec keyspace = Named("carts");
    edit(keyspace);
    const absl::Status status = CheckKeyspace(keyspace);
    if (status.ok()) return std::string();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    const std::string message(status.message());
    return message.substr(0, message.find(':'));
  };
  EXPECT_EQ(field([](auto&) {}), "");
  EXPECT_EQ(field([](auto& k) { k.name = "A-z_0.9"; }), "");
  EXPECT_EQ(field([](auto& k) { k.name = std::string(64, 'x'); }), "");
  EXPECT_EQ(field([](auto& k) { k.name = std::string(65, 'x'); }), "name");
  EXPECT_EQ(field([](auto& k) { k.name = ""; }), "name");
  EXPECT_EQ(field([](auto& k) { k.name = "a b"; }), "name");
  EXPECT_EQ(field([](auto& k) { k.name = "a/b"; }), "name");
  EXPECT_EQ(field([](auto& k) { k.name = "\xc3\xa4"; }), "name");
  EXPECT_EQ(field([](auto& k) { k.n = 0; }), "n");
  EXPECT_EQ(field([](auto& k) { k.n = -1; }), "n");
  EXPECT_EQ(field([](auto& k) { k.n = 8; }), "");
  EXPECT_EQ(field([](auto& k) { k.n = 9; }), "n");
  EXPECT_EQ(field([](auto& k) { k.r = {How::kCount, 4}; }), "r");
  EXPECT_EQ(field([](auto& k) { k.w = {How::kCount, 0}; }), "w");
  EXPECT_EQ(field([](auto& k) { k.w = {How::kCount, 3}; }), "");
  EXPECT_EQ(field([](auto& k) { k.conflict = static_cast<ConflictRule>(2); }), "conflict");
  EXPECT_EQ(field([](auto& k) { k.ttl_ms = KeyspaceSpec::kTtlMsMax; }), "");
  EXPECT_EQ(field([](auto& k) { k.ttl_ms = KeyspaceSpec::kTtlMsMax + 1; }), "ttl");
}

TEST(FirstLayout, IsAFunctionOfTheNodes) {
  const Layout layout = Three();
  EXPECT_EQ(layout, FirstLayout({{NodeId{1}, "a", 1}, {NodeId{2}, "b", 2}, {NodeId{3}, "c", 1}}));
  EXPECT_TRUE(CheckLayout(layout).ok());
  EXPECT_EQ(layout.epoch, 1u);
  EXPECT_EQ(layout.base_digest, 0u);
  EXPECT_EQ(layout.cluster_id, ClusterIdOf({NodeId{2}, NodeId{3}, NodeId{1}}));
  EXPECT_NE(layout.cluster_id, ClusterIdOf({NodeId{1}, NodeId{2}}));
  EXPECT_EQ(layout.voters, (std::vector<NodeId>{NodeId{1}, NodeId{2}, NodeId{3}}));
  ASSERT_EQ(layout.members.size(), 3u);
  EXPECT_EQ(layout.members[1].zone, "b");
  EXPECT_EQ(layout.members[1].tokens.size(), BalancedTokensOfWeight(2));
  EXPECT_TRUE(MakeView(layout).ok());
  ASSERT_EQ(layout.keyspaces.size(), 1u);
  EXPECT_EQ(layout.keyspaces[0], (KeyspaceSpec{.id = 1, .name = "default", .n = 3, .r = {}, .w = {}}));
  EXPECT_EQ(layout.keyspace_ids_used, 1u);
}

TEST(DigestOf, SeesEveryField) {
  const std::vector<std::function<void(Layout&)>> edits = {
      [](Layout& l) { ++l.cluster_id; },
      [](Layout& l) { ++l.epoch; },
      [](Layout& l) { ++l.base_digest; },
      [](Layout& l) { l.members.pop_back(); },
      [](Layout& l) { l.members[2].id = NodeId{4}; },
      [](Layout& l) { l.members[0].zone = "d"; },
      [](Layout& l) { l.members[0].zone = ""; },
      [](Layout& l) { ++l.members[0].weight; },
      [](Layout& l) { ++l.members[0].tokens[0].value; },
      [](Layout& l) { l.members[0].tokens.pop_back(); },
      [](Layout& l) { l.keyspaces.clear(); },
      [](Layout& l) { l.keyspaces[0].id = 2; },
      [](Layout& l) { l.keyspaces[0].name = "Default"; },
      [](Layout& l) { l.keyspaces[0].n = 2; },
      [](Layout& l) { l.keyspaces[0].r.how = How::kOne; },
      [](Layout& l) {
        l.keyspaces[0].r = {How::kCount, 2};
      },
      [](Layout& l) { l.keyspaces[0].w.how = How::kAll; },
      [](Layout& l) {
        l.keyspaces[0].w = {How::kCount, 2};
      },
      [](Layout& l) { l.keyspaces[0].conflict = ConflictRule::kLastWriteWins; },
      [](Layout& l) { l.keyspaces[0].ttl_ms = 1; },
      [](Layout& l) { l.keyspaces[0].strict = true; },
      [](Layout& l) { ++l.keyspace_ids_used; },
      [](Layout& l) { l.voters.pop_back(); },
      [](Layout& l) { l.voters[0] = NodeId{9}; },
      [](Layout& l) { l.fence = 1; },
      [](Layout& l) { l.abort = true; },
      [](Layout& l) { l.lost = {NodeId{9}}; },
      [](Layout& l) { l.removed = {NodeId{9}}; },
      [](Layout& l) {
        l.lost = {NodeId{9}};
        l.removed = {NodeId{9}};
      },
  };
  std::vector<uint64_t> digests = {DigestOf(Three())};
  for (const auto& edit : edits) {
    Layout layout = Three();
    edit(layout);
    digests.push_back(DigestOf(layout));
  }
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::unique(digests.begin(), digests.end()), digests.end());
}

TEST(DigestOf, NeverChanges) {
  const Layout layout{.cluster_id = 7,
                      .epoch = 2,
                      .base_digest = 9,
                      .members = {{NodeId{1}, "z", 1, {Token{5}}}},
                      .keyspaces = {{.id = 1, .name = "k", .r = {}, .w = {}}},
                      .keyspace_ids_used = 1,
                      .voters = {NodeId{1}}};
  EXPECT_EQ(ToString(Token{DigestOf(layout)}), "668f61233ff563dc");
}

TEST(Successor, CreatesChangesDrops) {
  const Layout first = Three();
  const Layout second = *WithKeyspace(first, Named("carts"));
  EXPECT_EQ(second.epoch, 2u);
  EXPECT_EQ(second.base_digest, DigestOf(first));
  EXPECT_EQ(second.cluster_id, first.cluster_id);
  EXPECT_EQ(second.members, first.members);
  EXPECT_EQ(second.voters, first.voters);
  EXPECT_EQ(second.keyspaces[1].id, 2u);
  EXPECT_TRUE(CheckLayout(second).ok());

  KeyspaceSpec changed = Named("carts");
  changed.id = 77;  // found by name
  changed.ttl_ms = 5;
  changed.w.how = How::kAll;
  const Layout third = *WithKeyspaceChanged(second, changed);
  EXPECT_EQ(third.epoch, 3u);
  EXPECT_EQ(third.keyspaces[1].id, 2u);
  EXPECT_EQ(third.keyspaces[1].ttl_ms, 5u);
  EXPECT_EQ(third.keyspaces[1].w.how, How::kAll);
  EXPECT_FALSE(third.keyspaces[1].strict);

  const Layout fourth = *WithoutKeyspace(third, "carts");
  EXPECT_EQ(fourth.keyspaces, first.keyspaces);
  EXPECT_EQ(fourth.keyspace_ids_used, 2u);
  EXPECT_EQ(WithKeyspace(fourth, Named("carts"))->keyspaces[1].id, 3u) << "ids are never used again";
}

TEST(Successor, Refuses) {
  const Layout base = Three();
  EXPECT_EQ(Code(WithKeyspace(base, Named("default"))), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Code(WithKeyspace(base, Named(""))), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Code(WithKeyspaceChanged(base, Named("carts"))), absl::StatusCode::kNotFound);
  EXPECT_EQ(Code(WithoutKeyspace(base, "carts")), absl::StatusCode::kNotFound);
  KeyspaceSpec other_n = Named("default");
  other_n.n = 2;
  EXPECT_EQ(Code(WithKeyspaceChanged(base, other_n)), absl::StatusCode::kInvalidArgument);
  KeyspaceSpec other_rule = Named("default");
  other_rule.conflict = ConflictRule::kLastWriteWins;
  EXPECT_EQ(Code(WithKeyspaceChanged(base, other_rule)), absl::StatusCode::kInvalidArgument);
  KeyspaceSpec other_r = Named("default");
  other_r.r = {How::kCount, 9};
  EXPECT_EQ(Code(WithKeyspaceChanged(base, other_r)), absl::StatusCode::kInvalidArgument);

  Layout full = base;
  while (full.keyspaces.size() < Layout::kKeyspacesMax) {
    full = *WithKeyspace(full, Named("k" + std::to_string(full.keyspaces.size())));
  }
  EXPECT_EQ(Code(WithKeyspace(full, Named("carts"))), absl::StatusCode::kResourceExhausted);
  Layout used_up = base;
  used_up.keyspace_ids_used = UINT32_MAX;
  EXPECT_EQ(Code(WithKeyspace(used_up, Named("carts"))), absl::StatusCode::kResourceExhausted);
}

TEST(CheckLayout, KnowsTheRules) {
  const std::vector<std::function<void(Layout&)>> breaks = {
      [](Layout& l) { l.cluster_id = 0; },
      [](Layout& l) { l.epoch = 0; },
      [](Layout& l) { l.base_digest = 1; },
      [](Layout& l) { l.members.clear(); },
      [](Layout& l) { std::swap(l.members[0], l.members[1]); },
      [](Layout& l) { l.members[1] = l.members[0]; },
      [](Layout& l) { l.members[0].id = NodeId{0}; },
      [](Layout& l) { l.voters.clear(); },
      [](Layout& l) { l.voters[0] = NodeId{0}; },
      [](Layout& l) { l.voters[1] = l.voters[0]; },
      [](Layout& l) { l.keyspaces[0].id = 0; },
      [](Layout& l) { l.keyspaces[0].id = 2; },
      [](Layout& l) { l.keyspaces[0].n = 0; },
      [](Layout& l) {
        l.keyspaces[0].r = {How::kQuorum, 2};
      },
      [](Layout& l) { l.keyspaces.push_back(l.keyspaces[0]); },
      [](Layout& l) {
        l.keyspace_ids_used = 2;
        l.keyspaces.push_back(l.keyspaces[0]);
        l.keyspaces[1].id = 2;  // a name twice
      },
      [](Layout& l) { l.fence = 1; },  // the first one moves nothing
      [](Layout& l) { l.fence = 2; },
      [](Layout& l) { l.abort = true; },
      [](Layout& l) { l.lost = {NodeId{1}}; },
      [](Layout& l) { l.removed = {NodeId{2}}; },
      [](Layout& l) { l.removed = {NodeId{0}}; },
      [](Layout& l) {
        l.lost = {NodeId{8}, NodeId{7}};
      },
      [](Layout& l) {
        l.removed = {NodeId{8}, NodeId{8}};
      },
      [](Layout& l) {
        for (uint64_t id = 10; l.removed.size() <= Layout::kRemovedMax; ++id) l.removed.push_back(NodeId{id});
      },
  };
  for (size_t i = 0; i < breaks.size(); ++i) {
    Layout layout = Three();
    breaks[i](layout);
    EXPECT_EQ(CheckLayout(layout).code(), absl::StatusCode::kInvalidArgument) << i;
  }
}

TEST(View, FindsKeyspaces) {
  Layout layout = Three();
  for (const char* name : {"zebra", "ant", "mole"}) layout = *WithKeyspace(layout, Named(name));
  layout = *WithoutKeyspace(layout, "zebra");
  const auto view = *MakeView(layout);
  EXPECT_EQ(view->layout, layout);
  EXPECT_EQ(view->digest, DigestOf(layout));
  EXPECT_EQ(view->ring.members().size(), 3u);
  for (const KeyspaceSpec& keyspace : layout.keyspaces) {
    EXPECT_EQ(view->Keyspace(keyspace.name)->id, keyspace.id);
    EXPECT_EQ(view->Keyspace(keyspace.id)->name, keyspace.name);
  }
  EXPECT_EQ(view->Keyspace("zebra"), nullptr);
  EXPECT_EQ(view->Keyspace(""), nullptr);
  EXPECT_EQ(view->Keyspace("zz"), nullptr);
  for (const uint32_t id : {0u, 2u, 5u}) EXPECT_EQ(view->Keyspace(id), nullptr) << id;
}

TEST(View, NeedsARing) {
  Layout layout = Three();
  for (Member& member : layout.members) member.tokens.clear();
  EXPECT_EQ(MakeView(layout).status().code(), absl::StatusCode::kInvalidArgument);
}

std::string BytesOf(const Layout& layout) {
  ByteWriter out(0);
  WriteLayout(out, layout);
  std::string bytes = out.Finish();
  bytes.resize(bytes.size() - kChecksumBytes);
  return bytes;
}

TEST(LayoutCodec, RoundTripAndTruncation) {
  Layout layout = FirstLayout({{NodeId{1}, "zone", 0}, {NodeId{UINT64_MAX}, "", 0}});
  layout.members[0].tokens = {Token{1}, Token{UINT64_MAX}};
  KeyspaceSpec keyspace = Named("carts");
  keyspace.r = {How::kCount, 2};
  keyspace.w = {How::kAll, 0};
  keyspace.conflict = ConflictRule::kLastWriteWins;
  keyspace.ttl_ms = 123456789;
  layout = *WithKeyspace(layout, keyspace);
  keyspace.name = "both";
  keyspace.strict = true;
  layout = *WithKeyspace(layout, keyspace);
  keyspace.name = "strict";
  keyspace.conflict = ConflictRule::kSiblings;
  layout = *WithKeyspace(layout, keyspace);
  const std::string bytes = BytesOf(layout);
  ByteReader in(bytes);
  EXPECT_EQ(ReadLayout(in), layout);
  EXPECT_TRUE(in.AtEnd());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader cut(std::string_view(bytes).substr(0, size));
    ReadLayout(cut);
    EXPECT_FALSE(cut.ok()) << size;
  }
}

// Behind what every layout has.
TEST(LayoutCodec, WhatALayoutSaysOfMovement) {
  const Layout plain = Later([](Layout&) {});
  const size_t plain_bytes = BytesOf(plain).size();
  for (const auto& edit : std::vector<std::function<void(Layout&)>>{
           [](Layout& l) { l.fence = 3; },
           [](Layout& l) {
             l.removed = {NodeId{7}, NodeId{8}};
           },
           [](Layout& l) { l.lost = {NodeId{7}}; },
           [](Layout& l) {
             l.fence = 5;
             l.abort = true;
             l.lost = {NodeId{7}};
             l.removed = {NodeId{8}};
           },
       }) {
    const Layout layout = Later(edit);
    const std::string bytes = BytesOf(layout);
    ByteReader in(bytes);
    EXPECT_EQ(ReadLayout(in), layout);
    EXPECT_TRUE(in.AtEnd());
    for (size_t size = 0; size < bytes.size(); ++size) {
      ByteReader cut(std::string_view(bytes).substr(0, size));
      ReadLayout(cut);
      EXPECT_EQ(cut.ok(), size == plain_bytes) << size;
    }
  }
  const std::string nothing_said = BytesOf(plain) + std::string(4, '\0');
  ByteReader in(nothing_said);
  ReadLayout(in);
  EXPECT_FALSE(in.ok()) << "one layout has one text";
}

}  // namespace
}  // namespace gyre

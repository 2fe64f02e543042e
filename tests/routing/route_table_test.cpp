#include "routing/route_table.hpp"

#include <catch2/catch.hpp>

using namespace flashgate;

namespace {

RouteTable table_of_three() {
  RouteTable table;
  table.profiles.resize(3);
  table.profiles[0].name = "local-flash";
  table.profiles[0].model = "flash";
  table.profiles[0].aliases = {"gpt-4o-mini"};
  table.profiles[0].tokenizer = TokenizerFamily::qwen;
  table.profiles[1].name = "cloud-main";
  table.profiles[1].model = "big";
  table.profiles[2].name = "flash";
  table.profiles[2].model = "big";
  return table;
}

}  // namespace

TEST_CASE("a name means the profile, then an alias, then every profile of that backend model") {
  const RouteTable table = table_of_three();
  using Found = std::vector<std::size_t>;
  CHECK(profiles_called(table, "cloud-main") == Found{1});
  CHECK(profiles_called(table, "flash") == Found{2});  // the profile's name wins over a model
  CHECK(profiles_called(table, "gpt-4o-mini") == Found{0});
  CHECK(profiles_called(table, "big") == Found{1, 2});
  CHECK(profiles_called(table, "Flash").empty());
  CHECK(profiles_called(table, "").empty());
}

TEST_CASE("the list of models holds auto and every allowed name once") {
  const RouteTable table = table_of_three();
  CHECK(visible_models(table, {}) == std::vector<std::string>{"auto", "local-flash", "flash",
                                                              "gpt-4o-mini", "cloud-main", "big"});
  CHECK(visible_models(table, {"cloud-main"}) ==
        std::vector<std::string>{"auto", "cloud-main", "big"});
}

TEST_CASE("the tokenizer families in use are asked for") {
  CHECK(token_families(table_of_three()) == 0b101);
  CHECK(token_families(RouteTable{}) == 1);
}

TEST_CASE("an endpoint is offered by short name, path, or folder of paths") {
  struct Row {
    const char* entry;
    ApiKind api;
    const char* path;
    bool offered;
  };
  for (const Row& row : {
           Row{"chat", ApiKind::chat, "/v1/chat/completions", true},
           Row{"chat/completions", ApiKind::chat, "/v1/chat/completions?x=1", true},
           Row{"/v1/chat/completions", ApiKind::chat, "/v1/chat/completions", true},
           Row{"chat", ApiKind::embeddings, "/v1/embeddings", false},
           Row{"completions", ApiKind::chat, "/v1/chat/completions", false},
           Row{"embeddings", ApiKind::embeddings, "/v1/embeddings", true},
           Row{"messages", ApiKind::count_tokens, "/v1/messages/count_tokens", true},
           Row{"audio", ApiKind::other, "/v1/audio/speech", true},
           Row{"audio/*", ApiKind::other, "/v1/audio/speech", true},
           Row{"audio/speech", ApiKind::other, "/v1/audio/transcriptions", false},
           Row{"audio", ApiKind::other, "/v1/audiofoo", false},
           Row{"", ApiKind::other, "/v1/rerank", false},
       }) {
    INFO(row.entry << " " << row.path);
    RouteProfile profile;
    CHECK(offers_endpoint(profile, row.api, row.path));
    profile.endpoints = {"moderations", row.entry};
    CHECK(offers_endpoint(profile, row.api, row.path) == row.offered);
  }
}

TEST_CASE("only generating endpoints move between models") {
  for (const ApiKind api :
       {ApiKind::chat, ApiKind::completions, ApiKind::responses, ApiKind::messages}) {
    CHECK(may_change_model(api));
  }
  for (const ApiKind api : {ApiKind::embeddings, ApiKind::count_tokens, ApiKind::other}) {
    CHECK_FALSE(may_change_model(api));
  }
}

TEST_CASE("a larger window is one known to be larger, or an unknown one of another model") {
  RouteProfile small;
  small.model = "a";
  small.context_length = 1000;
  RouteProfile large = small;
  large.context_length = 2000;
  RouteProfile unknown;
  unknown.model = "b";
  CHECK(may_have_larger_window(small, large));
  CHECK_FALSE(may_have_larger_window(large, small));
  CHECK_FALSE(may_have_larger_window(small, small));
  CHECK(may_have_larger_window(small, unknown));
  CHECK(may_have_larger_window(unknown, small));
  CHECK_FALSE(may_have_larger_window(unknown, unknown));
}

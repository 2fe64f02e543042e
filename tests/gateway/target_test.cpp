// Paths of requests: every spelling becomes one, and nothing leaves the API by spelling.
#include <catch2/catch.hpp>
#include <string>

#include "gateway/endpoints.hpp"

namespace flashgate {
namespace {

using namespace std::string_literals;

struct Spelling {
  std::string target;
  std::string path;
  std::string query{};
};

const Spelling same[] = {
    {"/v1/chat/completions", "/v1/chat/completions"},
    {"/v1/chat/completions/", "/v1/chat/completions"},
    {"//v1//chat///completions//", "/v1/chat/completions"},
    {"/v1/./chat/completions/.", "/v1/chat/completions"},
    {"/v1/x/../chat/completions", "/v1/chat/completions"},
    {"/../../v1/chat/completions", "/v1/chat/completions"},
    {"/v1/%63hat/completion%73", "/v1/chat/completions"},
    {"/v1/x/%2e%2E/chat/completions", "/v1/chat/completions"},
    {"/v1/..", "/"},
    {"/", "/"},
    {"/v1/../metrics", "/metrics"},
    {"/v1/a%20b", "/v1/a%20b"},
    {"/v1/a%3Ab", "/v1/a%3Ab"},
    {"/v1/\xff", "/v1/\xff"},
    {"/v1/x?a=b&c=%2F", "/v1/x", "a=b&c=%2F"},
    {"/v1/x?a?b", "/v1/x", "a?b"},
    {"/v1/x?../..", "/v1/x", "../.."},
    {"/v1/x#?a", "/v1/x"},
    {"/v1/x?a#b", "/v1/x", "a"},
    {"http://other/v1/x?q", "/v1/x", "q"},
    {"http://u:p@other:9/v1/x", "/v1/x"},
    {"http://other", "/"},
    {"http://other?q", "/", "q"},
    {"ftp://other/v1/x", "/v1/x"},
    {"/v1/models/org/name:tag", "/v1/models/org/name:tag"},
    {"/v1/models/org%2Fname%3Atag", "/v1/models/org/name:tag"},
    {"/v1/models/%2e%2e%2fchat", "/v1/models/../chat"},
    {"/v1/models/a%252Fb", "/v1/models/a%2Fb"},
};

const std::string refused[] = {
    "",
    "*",
    "chat",
    "other:80",
    "?a",
    "http:/v1/x",
    "/v1/%",
    "/v1/%2",
    "/v1/%zz",
    "/v1/%00",
    "/v1/%0a",
    "/v1/%7f",
    "/v1/a%2fb",
    "/v1/a%5Cb",
    "/v1/a\\b",
    "/v1/..%2f..%2fmetrics",
    "/v1/models/%00",
    "/v1/models/a%0d%0a",
    "/v1/models/%",
    "/v1/models/%g0",
};

TEST_CASE("every spelling of a path becomes the one that is matched and sent") {
  for (const Spelling& row : same) {
    INFO(row.target);
    const NormalPath got = normalize_target(row.target);
    CHECK(got.ok);
    CHECK(got.path == row.path);
    CHECK(got.query == row.query);
  }
}

TEST_CASE("a path that two readers could take for different ones is refused") {
  for (const std::string& target : refused) {
    INFO(target);
    CHECK_FALSE(normalize_target(target).ok);
  }
}

TEST_CASE("normalizing twice changes nothing") {
  for (const Spelling& row : same) {
    const NormalPath once = normalize_target(row.target);
    if (!once.ok || once.path.starts_with("/v1/models/")) continue;
    CHECK(normalize_target(once.path).path == once.path);
  }
}

TEST_CASE("any two bytes after a slash keep the path inside the root") {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string target = "/v1/"s + static_cast<char>(a) + static_cast<char>(b) + "/../x";
      const NormalPath got = normalize_target(target);
      if (!got.ok) continue;
      REQUIRE(got.path.front() == '/');
      REQUIRE(got.path.find("/../") == std::string::npos);
      REQUIRE(got.path.find("//") == std::string::npos);
    }
  }
}

TEST_CASE("only paths below /v1/ and the two probes are endpoints") {
  for (const char* path :
       {"/", "/v1", "/metrics", "/admin", "/api/status", "/V1/models", "/v2/x"}) {
    INFO(path);
    CHECK(find_endpoint(path).kind == EndpointKind::unknown);
  }
  CHECK(find_endpoint("/livez").kind == EndpointKind::livez);
  CHECK(find_endpoint("/readyz").kind == EndpointKind::readyz);
  CHECK(find_endpoint("/v1/models").kind == EndpointKind::models);
  CHECK(find_endpoint("/v1/models/a/b").kind == EndpointKind::model);
  CHECK(find_endpoint("/v1/chat/completions").api == ApiKind::chat);
  CHECK(find_endpoint("/v1/files/f1").kind == EndpointKind::proxy);
}

}  // namespace
}  // namespace flashgate

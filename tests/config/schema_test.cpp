#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "config/keys.hpp"
#include "tests/config/loading.hpp"

using namespace flashgate;

namespace {

/// Every key of the table, by its path.
void collect(const Section& section, const std::string& path, std::vector<std::string>& out) {
  for (const Key& key : section.keys) {
    const std::string at =
        path.empty() ? std::string(key.name) : path + '.' + std::string(key.name);
    out.push_back(at);
    if (key.inner != nullptr) collect(*key.inner, at, out);
  }
}

}  // namespace

TEST_CASE("the schema in deploy/ is the one that the program prints") {
  CHECK(read_source("deploy/flashgate.schema.json") == config_schema());
}

TEST_CASE("the schema describes every key and refuses others") {
  const auto schema = nlohmann::json::parse(config_schema());
  CHECK(schema["$schema"] == "http://json-schema.org/draft-07/schema#");
  CHECK(schema["additionalProperties"] == false);
  CHECK(schema["required"] == nlohmann::json::array({"profiles"}));
  const auto& profile = schema["properties"]["profiles"]["additionalProperties"];
  CHECK(profile["additionalProperties"] == false);
  for (const Key& key : profile_section().keys) {
    INFO(key.name);
    REQUIRE(profile["properties"].contains(std::string(key.name)));
    CHECK_FALSE(profile["properties"][std::string(key.name)]["description"].empty());
  }
  CHECK(profile["properties"]["tokenizer"]["enum"].size() == 5);
}

TEST_CASE("docs/configuration.md names every key") {
  const std::string page = read_source("docs/configuration.md");
  std::vector<std::string> paths;
  collect(root_section(), "", paths);
  for (const std::string& path : paths) {
    const std::string name = path.substr(path.rfind('.') + 1);
    INFO(path);
    CHECK(page.find('`' + name + '`') != std::string::npos);
  }
}

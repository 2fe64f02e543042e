#include "simulator/fault_rule.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "simulator/text_values.hpp"

using namespace flashgate;
using namespace std::chrono_literals;

namespace {

FaultRule rule_of(std::string_view text) {
  const auto rule = parse_fault_rule(text);
  INFO(text << ": " << (rule.has_error() ? rule.error().message : ""));
  REQUIRE(rule.has_value());
  return *rule;
}

std::string error_of(std::string_view text) {
  const auto rule = parse_fault_rule(text);
  return rule.has_error() ? rule.error().message : std::string("accepted");
}

}  // namespace

TEST_CASE("durations, shares, counts and spans are read as people type them") {
  CHECK(read_duration("0") == Duration{});
  CHECK(read_duration("50ms") == Duration(50ms));
  CHECK(read_duration("1.5s") == Duration(1500ms));
  CHECK(read_duration("250us") == Duration(250us));
  CHECK(read_duration("2m") == Duration(2min));
  for (const char* bad : {"", "50", "ms", "-1s", "1e3s", "25h", "50 ms", "1.2.3s", "nan", "inf"}) {
    INFO(bad);
    CHECK_FALSE(read_duration(bad).has_value());
  }
  CHECK(read_share("10%") == Approx(0.1));
  CHECK(read_share("0.25") == Approx(0.25));
  CHECK_FALSE(read_share("101%").has_value());
  CHECK_FALSE(read_share("-1%").has_value());
  CHECK(read_count("64k") == 65536u);
  CHECK(read_count("3m") == 3u * 1024 * 1024);
  CHECK_FALSE(read_count("18446744073709551615k").has_value());
  CHECK(read_span("3") == std::pair<std::uint64_t, std::uint64_t>{3, 3});
  CHECK(read_span("3-9") == std::pair<std::uint64_t, std::uint64_t>{3, 9});
  CHECK(read_span("3-")->second == std::numeric_limits<std::uint64_t>::max());
  CHECK_FALSE(read_span("9-3").has_value());
  CHECK_FALSE(read_span("0").has_value());
}

TEST_CASE("escapes name bytes that cannot be typed") {
  CHECK(unescape("a\\r\\n\\x2c\\\\") == "a\r\n,\\");
  CHECK(unescape("\\0") == std::string(1, '\0'));
  for (const char* bad : {"\\", "\\q", "\\x1", "\\xzz", "\\x"}) CHECK_FALSE(unescape(bad));
}

TEST_CASE("a rule is a kind, its value, its arguments and its conditions") {
  const FaultRule status = rule_of("status=503,retry_after=2,probability=10%,path=/v1/chat");
  CHECK(status.kind == FaultKind::status);
  CHECK(status.status == 503);
  CHECK(status.headers.at(0) == std::pair<std::string, std::string>{"retry-after", "2"});
  CHECK(status.when.probability == Approx(0.1));
  CHECK(status.when.path == "/v1/chat");

  const FaultRule cut = rule_of("cut, after_events=3, every=20, stream=true");
  CHECK(cut.kind == FaultKind::cut);
  CHECK(cut.place.after_events == 3u);
  CHECK(cut.when.every == 20);
  CHECK(cut.when.stream == true);

  CHECK(rule_of("reset:100").place.after_bytes == 100u);
  CHECK(rule_of("stall:at=after_headers,for=2s").duration == Duration(2s));
  CHECK(rule_of("wrong_length=-5").delta == -5);
  CHECK(rule_of("interim").status == 103);
  CHECK(rule_of("interim=100,count=3").count == 3);
  CHECK(rule_of("raw:HTTP/1.1 200 OK\\r\\nX: a=b\\r\\n\\r\\n").text ==
        "HTTP/1.1 200 OK\r\nX: a=b\r\n\r\n");
  CHECK(rule_of("status=400,header=x-a: b").headers.at(0).second == "b");
}

TEST_CASE("a rule that is not understood says what is wrong and what would be right") {
  struct Row {
    const char* rule;
    const char* says;
  };
  const Row table[] = {
      {"stattus=503", "unknown fault 'stattus'; one of: none refuse reset"},
      {"", "unknown fault ''"},
      {"status=abc", "'abc' is no value for 'status'"},
      {"status=99", "'99' is no value for 'status'"},
      {"status=503,after_events=1", "fault 'status' has no argument 'after_events'; it takes"},
      {"cut,probability=200%", "'200%' is no value for 'probability'"},
      {"cut,every=0", "'0' is no value for 'every'"},
      {"cut,3,4", "'3' is not argument=value"},
      {"empty:5", "'5' is not argument=value"},
      {"status=500,shape=xml", "'xml' is no value for 'shape'"},
      {"stall,at=middle", "'middle' is no value for 'at'"},
      {"raw=\\q", "unknown escape"},
      {"status=500,header=nocolon", "'nocolon' is no value for 'header'"},
      {"one_byte,stream=maybe", "'maybe' is no value for 'stream'"},
  };
  for (const Row& row : table) {
    INFO(row.rule);
    CHECK_THAT(error_of(row.rule), Catch::Contains(row.says));
  }
  CHECK(parse_fault_rule(std::string(300 * 1024, 'x')).has_error());
}

TEST_CASE("several rules are separated by semicolons") {
  const auto rules = parse_fault_rules("interim=103;cut,after_events=1; sse=crlf");
  REQUIRE(rules.has_value());
  REQUIRE(rules->size() == 3);
  CHECK((*rules)[2].style == "crlf");
  CHECK(parse_fault_rules("cut;nonsense").has_error());
  std::string many;
  for (int i = 0; i < 100; ++i) many += "cut;";
  CHECK(parse_fault_rules(many).has_error());
}

TEST_CASE("conditions choose requests by ordinal, path, stream, model, name and attempt") {
  const auto chosen = [](const char* text, const FaultFacts& facts) {
    return !choose_faults({rule_of(text)}, facts, 1).empty();
  };
  const FaultFacts facts{20, 2, "/v1/chat/completions", "flash", "a", true};
  CHECK(chosen("cut", facts));
  CHECK(chosen("cut,every=20", facts));
  CHECK_FALSE(chosen("cut,every=7", facts));
  CHECK(chosen("cut,requests=20", facts));
  CHECK_FALSE(chosen("cut,requests=1-19", facts));
  CHECK(chosen("cut,attempts=2", facts));
  CHECK_FALSE(chosen("cut,attempts=1", facts));
  CHECK(chosen("cut,path=/v1/chat", facts));
  CHECK_FALSE(chosen("cut,path=/v1/embeddings", facts));
  CHECK(chosen("cut,stream=true,model=flash,on=a", facts));
  CHECK_FALSE(chosen("cut,stream=false", facts));
  CHECK_FALSE(chosen("cut,model=cloud", facts));
  CHECK_FALSE(chosen("cut,on=b", facts));
}

TEST_CASE("a probability is met over many requests and is the same for the same seed") {
  const std::vector<FaultRule> rules{rule_of("status=503,probability=10%")};
  const auto draw = [&rules](std::uint64_t seed) {
    std::string out;
    for (std::uint64_t i = 1; i <= 5000; ++i) {
      FaultFacts facts;
      facts.ordinal = i;
      out += choose_faults(rules, facts, seed).empty() ? '.' : 'x';
    }
    return out;
  };
  const std::string first = draw(7);
  const auto hits = std::count(first.begin(), first.end(), 'x');
  CHECK(hits > 400);
  CHECK(hits < 600);
  CHECK(first == draw(7));
  CHECK(first != draw(8));
}

TEST_CASE("two rules with the same probability are drawn apart") {
  const std::vector<FaultRule> rules{rule_of("status=503,probability=50%"),
                                     rule_of("sse=crlf,probability=50%")};
  int differ = 0;
  for (std::uint64_t i = 1; i <= 200; ++i) {
    FaultFacts facts;
    facts.ordinal = i;
    differ += choose_faults(rules, facts, 3).size() == 1 ? 1 : 0;
  }
  CHECK(differ > 50);
}

TEST_CASE("none keeps the rules after it from being asked") {
  const std::vector<FaultRule> rules{rule_of("none,requests=1"), rule_of("cut")};
  FaultFacts facts;
  CHECK(choose_faults(rules, facts, 1).empty());
  facts.ordinal = 2;
  CHECK(choose_faults(rules, facts, 1).size() == 1);
}

TEST_CASE("every fault has a row in the documentation") {
  std::ifstream file(FLASHGATE_SOURCE_DIR "/docs/simulator.md");
  std::stringstream page;
  page << file.rdbuf();
  std::istringstream lines(describe_faults());
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string kind = line.substr(0, line.find(':'));
    if (kind == "conditions") continue;
    INFO(kind);
    CHECK(page.str().find("| `" + kind) != std::string::npos);
    ++rows;
  }
  CHECK(rows == 30);
}

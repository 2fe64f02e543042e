// Token estimates against counts that the real tokenizers gave
// (tests/data/text/token_vectors.jsonl, written by tests/text/tokenizers/check.mjs --vectors), and
// against hostile bytes.
#include "text/token_estimate.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

using namespace flashgate;

namespace {

constexpr std::array families = {TokenizerFamily::o200k, TokenizerFamily::cl100k,
                                 TokenizerFamily::qwen, TokenizerFamily::llama3,
                                 TokenizerFamily::deepseek};

struct Vector {
  std::string kind;
  std::string text;
  std::array<double, 5> tokens;
};

std::vector<Vector> read_vectors() {
  std::ifstream file(FLASHGATE_SOURCE_DIR "/tests/data/text/token_vectors.jsonl");
  std::vector<Vector> vectors;
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    vectors.push_back({row.at("kind"), row.at("text"), row.at("tokens")});
  }
  return vectors;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

std::string repeated(std::string_view piece, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += piece;
  return text;
}

}  // namespace

TEST_CASE("no text is estimated below 0.8 of its true count before any correction") {
  const auto vectors = read_vectors();
  REQUIRE(vectors.size() >= 400);
  for (const auto& vector : vectors) {
    for (std::size_t i = 0; i < families.size(); ++i) {
      CAPTURE(vector.kind, vector.text, name(families[i]), vector.tokens[i]);
      CHECK(estimate_tokens(vector.text, families[i]) >= 0.8 * vector.tokens[i]);
    }
  }
}

TEST_CASE("after 20 corrections the median error is at most 10 % on every usual kind of text") {
  const auto vectors = read_vectors();
  for (std::size_t i = 0; i < families.size(); ++i) {
    std::map<std::string, std::vector<const Vector*>> kinds;
    for (const auto& vector : vectors) {
      if (vector.tokens[i] >= 15) kinds[vector.kind].push_back(&vector);
    }
    const std::array usual = {"english", "chinese", "code", "mixed"};
    EstimateCorrection correction;
    for (std::size_t turn = 0; turn < 20; ++turn) {
      const auto& list = kinds[usual[turn % usual.size()]];
      const Vector& vector = *list[turn * 7 % list.size()];
      correction.observe(estimate_tokens(vector.text, families[i]), vector.tokens[i]);
    }
    CHECK(correction.samples() == 20);
    for (const char* kind : usual) {
      std::vector<double> errors;
      for (const Vector* vector : kinds[kind]) {
        const double corrected = estimate_tokens(vector->text, families[i]) * correction.factor();
        errors.push_back(std::abs(corrected / vector->tokens[i] - 1));
      }
      CAPTURE(kind, name(families[i]), correction.factor());
      REQUIRE(errors.size() >= 10);
      CHECK(median(errors) <= 0.10);
    }
  }
}

TEST_CASE("a Han character is never estimated like four Latin ones") {
  const std::string text = repeated("这个季度的销售数据比去年同期有明显增长。", 21000);
  for (const auto family : families) {
    const double per_character =
        estimate_tokens(text, family) / (static_cast<double>(text.size()) / 3);
    CAPTURE(name(family), per_character);
    CHECK(per_character >= 0.5);
    CHECK(per_character <= 1.6);
  }
}

TEST_CASE("an empty text costs nothing and any other something") {
  for (const auto family : families) {
    CHECK(estimate_tokens("", family) == 0);
    for (int byte = 0; byte < 256; ++byte) {
      CHECK(estimate_tokens(std::string(1, static_cast<char>(byte)), family) >= 0.8);
    }
  }
}

TEST_CASE("random bytes give a finite estimate that is never far above their number") {
  std::mt19937 dice(20260307);
  for (int round = 0; round < 2000; ++round) {
    std::string text(dice() % 200, '\0');
    for (char& c : text) c = static_cast<char>(dice());
    const double tokens = estimate_tokens(text, families[round % families.size()]);
    CAPTURE(round);
    REQUIRE(std::isfinite(tokens));
    REQUIRE(tokens >= 0);
    REQUIRE(tokens <= 5.0 * static_cast<double>(text.size()) + 3);
  }
}

TEST_CASE("cutting a text anywhere never makes it dearer than the whole by more than its ends") {
  const std::string text =
      "Größe 价格 12345 {\"ключ\": \"🙂 値\"} internationalization();\n";
  for (const auto family : families) {
    const double whole = estimate_tokens(text, family);
    for (std::size_t length = 0; length <= text.size(); ++length) {
      CAPTURE(length);
      CHECK(estimate_tokens(std::string_view(text).substr(0, length), family) <= whole + 8);
    }
  }
}

TEST_CASE("time grows with length only, whatever the bytes") {
  using clock = std::chrono::steady_clock;
  for (const char* piece :
       {"a", "的", "{", " ", "\n", "7", "🙂", "\xFF", "aB", "é", "http://x.y/?z="}) {
    const std::string text = repeated(piece, 1 << 20);
    const auto start = clock::now();
    CHECK(estimate_tokens(text, TokenizerFamily::o200k) > 0);
    CAPTURE(piece);
    CHECK(clock::now() - start < std::chrono::seconds(2));
  }
}

TEST_CASE("tokenizer families are read by the names they are written with") {
  for (const auto family : families) CHECK(parse_tokenizer_family(name(family)) == family);
  CHECK_FALSE(parse_tokenizer_family("O200K"));
  CHECK_FALSE(parse_tokenizer_family(""));
  CHECK_FALSE(parse_tokenizer_family("gpt2"));
}

TEST_CASE("a correction starts at one and settles on the median of what was seen") {
  EstimateCorrection correction;
  CHECK(correction.factor() == 1.0);
  CHECK(correction.samples() == 0);
  for (int i = 0; i < 20; ++i) correction.observe(100, i == 7 ? 4000 : 85);
  CHECK(correction.factor() == Approx(0.85).epsilon(0.001));
  CHECK(correction.samples() == 20);
  for (int i = 0; i < EstimateCorrection::window; ++i) correction.observe(100, 120);
  CHECK(correction.factor() == Approx(1.2).epsilon(0.001));
}

TEST_CASE("the first samples move a correction only part of the way") {
  EstimateCorrection correction;
  correction.observe(100, 50);
  CHECK(correction.factor() < 1.0);
  CHECK(correction.factor() > 0.9);
}

TEST_CASE("a correction is bounded and ignores numbers that mean nothing") {
  EstimateCorrection correction;
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    correction.observe(bad, 10);
    correction.observe(10, bad);
  }
  CHECK(correction.samples() == 0);
  for (int i = 0; i < 40; ++i) correction.observe(1, 1e12);
  CHECK(correction.factor() == EstimateCorrection::factor_max);
  for (int i = 0; i < 40; ++i) correction.observe(1e12, 1);
  CHECK(correction.factor() == EstimateCorrection::factor_min);
}

#include <catch2/catch.hpp>

#include "tests/config/loading.hpp"

using namespace flashgate;

namespace {

std::string repeat(const std::string& piece, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += piece;
  return out;
}

}  // namespace

TEST_CASE("what YAML would read in a surprising way is refused at its place") {
  struct Row {
    std::string text;
    std::string expected;
  };
  const Row rows[] = {
      {"a: &x [1]\nb: *x\n", "1:4 error: anchors"},
      {"a: *x\n", "1:4 error: not valid YAML"},
      {"a: 1\n<<: {b: 1}\n", "2:1 error: merge keys"},
      {"a: !!python/object x\n", "1:4 error: tags"},
      {"a: 1\n---\nb: 2\n", "3:1 error: a second document"},
      {"profiles:\n\ta: 1\n", "2:1 error: a tab in the indentation"},
      {"profiles:\n  a:\n    model: x\n   base_url: y\n", "4:4 error: not valid YAML"},
      {"a: b: c\n", "1:5 error: not valid YAML"},
      {"a: {b: 1\n", "2:1 error: not valid YAML: a '}' is missing"},
      {"a: \"half writ", "1:14 error: not valid YAML: the closing quote is missing"},
      {"a: \"half written\n", "1:4 error: the closing quote is missing"},
      {"a: 'it''s \n", "1:4 error: the closing quote is missing"},
      {"a: >16000\n", "1:6 error: not valid YAML"},
      {"[a]: 1\n", "1:1 error: a key must be plain text"},
      {std::string("a\0: 1\n", 6), "1:2 error: the file holds a NUL byte"},
      {"a: \x1b[31m\n", "1:4 error: the file holds a control character"},
      {"a: 1\rb: 2\r", "1:5 error: a line ends in a lone carriage return"},
      {"ab:\n  \xe4\xb8\xad\xff: 1\n", "2:4 error: the file is not valid UTF-8"},
      {repeat("[", 100000), "1:1 error: "},
      {repeat("- ", 100000), "1:65 error: the file is nested too deeply"},
      {repeat("{a: ", 50000), "1:1 error: "},
      {"# " + std::string(config_bytes_max, 'x'), "0:0 error: the file is larger than 1 MiB"},
      {repeat("a:\n", 60000), "50001:1 error: the file holds too many values"},
  };
  for (const Row& row : rows) {
    INFO(row.text.substr(0, 60));
    const auto loaded = World{}.load(row.text);
    INFO(summary(loaded).substr(0, 500));
    CHECK_FALSE(loaded.config.has_value());
    REQUIRE_FALSE(loaded.diagnostics.empty());
    CHECK(summary(loaded).rfind(row.expected, 0) == 0);
    CHECK_FALSE(render(loaded.diagnostics, row.text, true).empty());
  }
}

TEST_CASE("a byte order mark and CRLF line ends are harmless") {
  std::string text = "\xef\xbb\xbf" + read_source("examples/founding.yaml");
  std::string crlf;
  for (const char c : text) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  for (const auto& variant : {text, crlf}) {
    const auto loaded = World{}.load(variant);
    INFO(summary(loaded));
    CHECK(loaded.config.has_value());
  }
}

TEST_CASE("a hopeless file gives a bounded number of diagnostics") {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  const auto loaded = World{}.load(text);
  CHECK(loaded.diagnostics.size() <= 201);
  CHECK(summary(loaded).find("more errors follow") != std::string::npos);
}

TEST_CASE("every cut of a full file gives a configuration or an error, never an exception") {
  const std::string text = read_source("examples/full.yaml");
  for (std::size_t size = 0; size < text.size(); size += 7) {
    const auto loaded = World{}.load(text.substr(0, size));
    CHECK(loaded.config.has_value() == !has_errors(loaded.diagnostics));
  }
}

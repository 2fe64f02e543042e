// Reads a JSON array of texts on stdin and prints, for each, the estimate of every family; with
// --shapes also what was counted. With --factors it reads arrays of [estimated, actual] pairs
// instead and prints the correction factor learnt from each. The scripts of tests/text/tokenizers
// hold all this against the real tokenizers.
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/text_shape.hpp"
#include "text/token_estimate.hpp"

namespace {

using flashgate::TokenizerFamily;
using nlohmann::json;

constexpr std::array families = {TokenizerFamily::o200k, TokenizerFamily::cl100k,
                                 TokenizerFamily::qwen, TokenizerFamily::llama3,
                                 TokenizerFamily::deepseek};

json estimates(const std::string& text, bool with_shapes) {
  json row;
  for (const auto family : families) {
    row[std::string(flashgate::name(family))] = flashgate::estimate_tokens(text, family);
  }
  if (with_shapes) row["shapes"] = flashgate::count_shapes(text);
  return row;
}

json factor(const json& pairs) {
  flashgate::EstimateCorrection correction;
  for (const auto& pair : pairs) correction.observe(pair.at(0), pair.at(1));
  return correction.factor();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  const auto input = json::parse(std::cin, nullptr, false);
  if (!input.is_array()) {
    std::cerr << "estimate_driver: stdin is not a JSON array\n";
    return 2;
  }
  auto rows = json::array();
  for (const auto& item : input) {
    rows.push_back(mode == "--factors" ? factor(item)
                                       : estimates(item.get<std::string>(), mode == "--shapes"));
  }
  std::cout << rows.dump() << '\n';
  return std::cout ? 0 : 1;
}

// Reads a JSON array of texts on stdin and prints, for each, the estimate of every family; with
// --shapes also what was counted. The scripts of tests/text/tokenizers hold it against the real
// tokenizers.
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/text_shape.hpp"
#include "text/token_estimate.hpp"

int main(int argc, char** argv) {
  using flashgate::TokenizerFamily;
  constexpr std::array families = {TokenizerFamily::o200k, TokenizerFamily::cl100k,
                                   TokenizerFamily::qwen, TokenizerFamily::llama3,
                                   TokenizerFamily::deepseek};
  const bool with_shapes = argc > 1 && std::string_view(argv[1]) == "--shapes";
  const auto texts = nlohmann::json::parse(std::cin, nullptr, false);
  if (!texts.is_array()) {
    std::cerr << "estimate_driver: stdin is not a JSON array of strings\n";
    return 2;
  }
  auto rows = nlohmann::json::array();
  for (const auto& text : texts) {
    const auto& bytes = text.get_ref<const std::string&>();
    nlohmann::json row;
    for (const auto family : families) {
      row[std::string(flashgate::name(family))] = flashgate::estimate_tokens(bytes, family);
    }
    if (with_shapes) row["shapes"] = flashgate::count_shapes(bytes);
    rows.push_back(std::move(row));
  }
  std::cout << rows.dump() << '\n';
  return std::cout ? 0 : 1;
}

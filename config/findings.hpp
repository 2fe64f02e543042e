#pragma once
// The diagnostics of one load, collected: every check adds what it finds and goes on, so that the
// reader sees all of it at once. Bounded: a hopeless file ends in "and more". One thread.
#include <string>
#include <utility>
#include <vector>

#include "config/load.hpp"
#include "config/yaml_tree.hpp"

namespace flashgate {

class Findings {
 public:
  static constexpr std::size_t count_max = 200;

  explicit Findings(std::string file) : file_(std::move(file)) {}

  void error(Place place, std::string path, std::string message, std::string suggestion = {}) {
    add(Severity::error, place, std::move(path), std::move(message), std::move(suggestion));
  }
  void warning(Place place, std::string path, std::string message, std::string suggestion = {}) {
    add(Severity::warning, place, std::move(path), std::move(message), std::move(suggestion));
  }
  bool has_errors() const { return flashgate::has_errors(found_); }
  std::vector<Diagnostic> take_sorted();

 private:
  void add(Severity severity, Place place, std::string path, std::string message,
           std::string suggestion);

  std::string file_;
  std::vector<Diagnostic> found_{};
  bool overflowed_ = false;
};

/// "did you mean 'timeout'?", or nothing when nothing is close.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);
/// "'a', 'b' or 'c'".
std::string one_of(const std::vector<std::string>& names);
/// The text in single quotes, cut to what a line can show.
std::string quoted(std::string_view text);

}  // namespace flashgate

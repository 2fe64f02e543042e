// The law of docs/ARCHITECTURE.md: its folder table says who may include whom, and its pure folders
// read no clock, dice or environment. The checks take a map of path to text, so that a test can
// plant what they must find.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

using Files = std::map<std::string, std::string>;  // path from the root -> text
using Layers = std::map<std::string, std::set<std::string>>;

constexpr std::array<std::string_view, 5> pure_folders = {"base", "text", "protocol", "routing",
                                                          "config"};
constexpr std::array<std::string_view, 6> impure_calls = {
    "::now(", "random_device", "getenv(", "std::rand(", "std::time(", "clock_gettime("};

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The folder of `a/b.hpp` is `a`; a file at the root has none.
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

/// All words in backquotes in `cell`, without a closing slash.
std::vector<std::string> quoted_words(std::string_view cell) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t open = cell.find('`');
    if (open == std::string_view::npos) return words;
    const std::size_t close = cell.find('`', open + 1);
    if (close == std::string_view::npos) return words;
    std::string word(cell.substr(open + 1, close - open - 1));
    if (!word.empty() && word.back() == '/') word.pop_back();
    words.push_back(word);
    cell.remove_prefix(close + 1);
  }
}

/// Rows of the form | `folder/` | what it holds | `a`, `b` or nothing |
Layers read_layers(const std::string& page) {
  Layers layers;
  for (const std::string& line : lines_of(page)) {
    if (line.rfind("| `", 0) != 0) continue;
    const std::size_t first = line.find('|', 1);
    const std::size_t last = line.rfind('|');
    const std::size_t before = last == 0 ? std::string::npos : line.rfind('|', last - 1);
    if (before == std::string::npos || before <= first) continue;
    const std::vector<std::string> names = quoted_words(line.substr(0, first));
    if (names.size() != 1 || line.find("/`") > first) continue;
    const std::vector<std::string> may = quoted_words(line.substr(before, last - before));
    layers[names.front()] = std::set<std::string>(may.begin(), may.end());
  }
  return layers;
}

/// The root-relative path of an #include "…" line, or empty.
std::string included_path(std::string_view line) {
  const std::size_t start = line.find_first_not_of(" \t");
  if (start == std::string_view::npos || line[start] != '#') return {};
  const std::size_t word = line.find_first_not_of(" \t", start + 1);
  if (word == std::string_view::npos || line.substr(word, 7) != "include") return {};
  const std::size_t open = line.find('"', word);
  const std::size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
  if (close == std::string_view::npos) return {};
  return std::string(line.substr(open + 1, close - open - 1));
}

std::vector<std::string> include_violations(const Layers& layers, const Files& files) {
  std::vector<std::string> found;
  for (const auto& [path, text] : files) {
    const std::string from = folder_of(path);
    if (from.empty()) continue;
    const auto row = layers.find(from);
    if (row == layers.end()) {
      found.push_back(path + ": the folder is not in the table of docs/ARCHITECTURE.md");
      continue;
    }
    for (const std::string& line : lines_of(text)) {
      const std::string included = included_path(line);
      if (included.empty()) continue;
      const std::string to = folder_of(included);
      if (to.empty())
        found.push_back(path + " includes " + included + ", not by its path from the root");
      else if (to != from && row->second.count(to) == 0)
        found.push_back(path + " includes " + included + "; " + from + " may not include " + to);
    }
  }
  return found;
}

std::vector<std::string> purity_violations(const Files& files) {
  std::vector<std::string> found;
  for (const auto& [path, text] : files) {
    if (std::find(pure_folders.begin(), pure_folders.end(), folder_of(path)) == pure_folders.end())
      continue;
    for (const std::string_view call : impure_calls)
      if (text.find(call) != std::string::npos)
        found.push_back(path + " uses " + std::string(call) + "; take it as a parameter");
  }
  return found;
}

/// Everything that `from` may reach through what it may include.
std::set<std::string> reachable(const Layers& layers, const std::string& from) {
  std::set<std::string> seen;
  std::vector<std::string> open{from};
  while (!open.empty()) {
    const auto row = layers.find(open.back());
    open.pop_back();
    if (row == layers.end()) continue;
    for (const std::string& to : row->second)
      if (seen.insert(to).second) open.push_back(to);
  }
  return seen;
}

std::vector<std::string> table_violations(const Layers& layers) {
  std::vector<std::string> found;
  for (const auto& [from, may] : layers) {
    if (reachable(layers, from).count(from) != 0) found.push_back(from + " may include itself");
    for (const std::string& to : may)
      if (layers.count(to) == 0) found.push_back(from + " may include " + to + ": no such row");
  }
  return found;
}

/// Every source below the folders that hold one directly (tests mirror them and are free).
Files source_files() {
  const fs::path root = FLASHGATE_SOURCE_DIR;
  const std::set<std::string> apart = {"build", "tests", "docs", "examples", "deploy", "scripts"};
  Files files;
  for (const fs::directory_entry& folder : fs::directory_iterator(root)) {
    const std::string name = folder.path().filename().string();
    if (!folder.is_directory() || name.front() == '.' || apart.count(name) != 0) continue;
    for (const fs::directory_entry& file : fs::recursive_directory_iterator(folder.path())) {
      const std::string kind = file.path().extension().string();
      if (kind != ".hpp" && kind != ".cpp") continue;
      files[file.path().lexically_relative(root).generic_string()] = read_text(file.path());
    }
  }
  return files;
}

Layers documented_layers() {
  return read_layers(read_text(fs::path(FLASHGATE_SOURCE_DIR) / "docs/ARCHITECTURE.md"));
}

}  // namespace

TEST_CASE("every include obeys the folder table of the architecture page") {
  const Files files = source_files();
  REQUIRE(files.size() > 100);
  CHECK(include_violations(documented_layers(), files) == std::vector<std::string>{});
}

TEST_CASE("pure folders read no clock, dice or environment") {
  CHECK(purity_violations(source_files()) == std::vector<std::string>{});
}

TEST_CASE("the folder table has a row for each name in it, and no circle") {
  const Layers layers = documented_layers();
  CHECK(layers.size() >= 10);
  CHECK(table_violations(layers) == std::vector<std::string>{});
  for (const std::string_view folder : pure_folders) {
    INFO(folder);
    REQUIRE(layers.count(std::string(folder)) == 1);
    CHECK(layers.at(std::string(folder)).count("net") == 0);
    CHECK(layers.at(std::string(folder)).count("gateway") == 0);
  }
}

TEST_CASE("a planted include against the table is found, in any spelling") {
  const Layers layers = read_layers("| `base/` | words | nothing |\n| `net/` | I/O | `base` |\n");
  REQUIRE(layers.size() == 2);
  CHECK(include_violations(layers, {{"net/io.hpp", "#include \"base/url.hpp\"\n"}}).empty());
  CHECK(include_violations(layers, {{"net/io.hpp", "#include \"net/event.hpp\"\n"}}).empty());
  CHECK(include_violations(layers, {{"net/io.hpp", "#include <boost/asio.hpp>\n"}}).empty());
  const std::array<std::string, 4> planted = {
      "#include \"net/io.hpp\"\n", "  #  include \"net/io.hpp\"\n",
      "int a;\n#include \"net/io.hpp\"  // only here\n", "#include \"url.hpp\"\n"};
  for (const std::string& text : planted) {
    INFO(text);
    CHECK(include_violations(layers, {{"base/url.cpp", text}}).size() == 1);
  }
  CHECK(include_violations(layers, {{"new/thing.cpp", "int a;\n"}}).size() == 1);
}

TEST_CASE("a planted clock, die or variable in a pure folder is found") {
  const std::array<std::string, 4> planted = {
      "auto t = std::chrono::steady_clock::now();", "std::random_device dice;",
      "const char* key = std::getenv(\"KEY\");", "int a = std::rand();"};
  for (const std::string& text : planted) {
    INFO(text);
    CHECK(purity_violations({{"routing/breaker.cpp", text}}).size() == 1);
    CHECK(purity_violations({{"gateway/worker.cpp", text}}).empty());
  }
}

TEST_CASE("a planted circle and a missing row of the table are found") {
  const char* const circle = "| `a/` | x | `b` |\n| `b/` | y | `c` |\n| `c/` | z | `a` |\n";
  CHECK(table_violations(read_layers(circle)).size() == 3);
  CHECK(table_violations(read_layers("| `a/` | x | `b` |\n")).size() == 1);
  CHECK(table_violations(read_layers("| `a/` | x | `b` |\n| `b/` | y | nothing |\n")).empty());
}

#include "config/yaml_tree.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>

#include "base/json_text.hpp"

namespace flashgate {
namespace {

constexpr std::size_t faults_max = 20;

/// Turns byte offsets of yaml-cpp's marks into characters of the line.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {
    starts_.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'))) {
        starts_.push_back(i + 1);
      }
    }
  }

  /// `line` and `byte` from 0.
  Place place(int line, int byte) const {
    if (line < 0) return {1, 1};
    const auto row = std::min(static_cast<std::size_t>(line), starts_.size() - 1);
    const std::size_t begin = starts_[row];
    const std::size_t end =
        std::min(text_.size(), begin + static_cast<std::size_t>(std::max(byte, 0)));
    int column = 1;
    for (std::size_t i = begin; i < end; ++i) {
      if ((static_cast<unsigned char>(text_[i]) & 0xc0) != 0x80) ++column;
    }
    return {static_cast<int>(row) + 1, column};
  }

  Place place_of_offset(std::size_t offset) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
    const auto row = static_cast<std::size_t>(after - starts_.begin()) - 1;
    return place(static_cast<int>(row), static_cast<int>(offset - starts_[row]));
  }

  std::size_t offset(Place place) const {
    std::size_t at = start(static_cast<std::size_t>(place.line) - 1);
    for (int column = 1; column < place.column && at < text_.size(); ++column) {
      ++at;
      while (at < text_.size() && (static_cast<unsigned char>(text_[at]) & 0xc0) == 0x80) ++at;
    }
    return at;
  }

  std::size_t count() const { return starts_.size(); }
  std::size_t start(std::size_t row) const { return starts_[row]; }

 private:
  std::string_view text_;
  std::vector<std::size_t> starts_{};
};

/// Ends the parse from inside a handler; never leaves this file.
struct Refused : std::exception {
  YamlFault fault{};
};

[[noreturn]] void refuse(Place place, std::string message, std::string suggestion = {}) {
  Refused refused;
  refused.fault = {place, std::move(message), std::move(suggestion)};
  throw refused;
}

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const Lines& lines) : lines_(lines) {}

  YamlNode take_root() { return std::move(root_); }
  /// Where the last scalar that is not plain begins.
  std::optional<Place> last_quoted() const { return last_quoted_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    YamlNode node;
    node.place = at(mark);
    add(std::move(node));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(at(mark), "aliases (*name) are not accepted", "write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, tag, anchor);
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.place = at(mark);
    node.text = value;
    node.plain = tag == "?";
    if (!node.plain) last_quoted_ = node.place;
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check(mark, tag, anchor);
    open(mark, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    check(mark, tag, anchor);
    open(mark, YamlNode::Kind::map);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YamlNode node{};
    bool has_key = false;
    YamlMember pending{};
  };

  Place at(const YAML::Mark& mark) const { return lines_.place(mark.line, mark.column); }

  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) refuse(at(mark), "anchors (&name) are not accepted", "write the value out");
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(at(mark), "tags (!name) are not accepted", "quote the value if it must be text");
    }
    if (++nodes_ > yaml_nodes_max) refuse(at(mark), "the file holds too many values");
  }

  void open(const YAML::Mark& mark, YamlNode::Kind kind) {
    if (static_cast<int>(stack_.size()) >= yaml_depth_max) {
      refuse(at(mark), "the file is nested too deeply");
    }
    if (!stack_.empty() && wants_key(stack_.back())) {
      refuse(at(mark), "a key must be plain text, not a list or a map");
    }
    stack_.emplace_back();
    stack_.back().node.kind = kind;
    stack_.back().node.place = at(mark);
  }

  void close() {
    YamlNode done = std::move(stack_.back().node);
    stack_.pop_back();
    add(std::move(done));
  }

  static bool wants_key(const Open& open) {
    return open.node.kind == YamlNode::Kind::map && !open.has_key;
  }

  void add(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == YamlNode::Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else if (wants_key(parent)) {
      take_key(parent, std::move(node));
    } else {
      if (node.kind == YamlNode::Kind::null) node.place = parent.pending.place;
      parent.pending.value = std::move(node);
      parent.node.members.push_back(std::move(parent.pending));
      parent.pending = {};
      parent.has_key = false;
    }
  }

  void take_key(Open& parent, YamlNode node) const {
    if (node.kind == YamlNode::Kind::null) refuse(node.place, "a key is missing before ':'");
    if (node.text == "<<" && node.plain) {
      refuse(node.place, "merge keys (<<) are not accepted", "write the values out");
    }
    parent.pending.place = node.place;
    parent.pending.key = std::move(node.text);
    parent.has_key = true;
  }

  const Lines& lines_;
  YamlNode root_{};
  std::optional<Place> last_quoted_{};
  std::vector<Open> stack_{};
  int nodes_ = 0;
};

/// What yaml-cpp would swallow, or report in a way that helps no one.
void scan_bytes(std::string_view text, const Lines& lines, std::vector<YamlFault>& faults) {
  for (std::size_t i = 0; i < text.size() && faults.empty(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) {
      faults.push_back({lines.place_of_offset(i), "the file holds a NUL byte",
                        "save it as UTF-8 text (UTF-16 has a NUL in every character)"});
    } else if ((byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') || byte == 0x7f) {
      faults.push_back({lines.place_of_offset(i), "the file holds a control character", ""});
    } else if (byte == '\r' && (i + 1 == text.size() || text[i + 1] != '\n')) {
      faults.push_back({lines.place_of_offset(i), "a line ends in a lone carriage return",
                        "end lines with LF or CRLF"});
    }
  }
  if (!faults.empty() || is_valid_utf8(text)) return;
  std::size_t good = 0;  // the first bad byte lies in the first line that is not valid
  for (std::size_t row = 0; row < lines.count(); ++row) {
    const std::size_t begin = lines.start(row);
    const std::size_t end = row + 1 < lines.count() ? lines.start(row + 1) : text.size();
    if (is_valid_utf8(text.substr(begin, end - begin))) continue;
    good = begin;
    for (std::size_t size = 1; begin + size <= end; ++size) {
      if (is_valid_utf8(text.substr(begin, size))) good = begin + size;
      if (size > 4096) break;
    }
    break;
  }
  faults.push_back({lines.place_of_offset(good), "the file is not valid UTF-8",
                    "save it with the encoding UTF-8"});
}

/// yaml-cpp takes the end of the file for a closing quote: a half-written file must not pass.
bool is_unterminated(std::string_view text, std::size_t begin) {
  if (begin >= text.size() || (text[begin] != '"' && text[begin] != '\'')) return false;
  const char quote = text[begin];
  for (std::size_t at = begin + 1; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (text[at] == quote) {
      const bool doubled = quote == '\'' && at + 1 < text.size() && text[at + 1] == quote;
      if (!doubled) return false;
      ++at;
    }
  }
  return true;
}

void scan_tabs(std::string_view text, const Lines& lines, std::vector<YamlFault>& faults) {
  for (std::size_t row = 0; row < lines.count() && faults.size() < faults_max; ++row) {
    std::size_t at = lines.start(row);
    while (at < text.size() && text[at] == ' ') ++at;
    if (at >= text.size() || text[at] != '\t') continue;
    const std::size_t content = text.find_first_not_of(" \t", at);
    if (content == std::string_view::npos || text[content] == '\n' || text[content] == '\r' ||
        text[content] == '#') {
      continue;
    }
    faults.push_back({lines.place_of_offset(at), "a tab in the indentation",
                      "YAML is indented with spaces only"});
  }
}

std::string plain_words(const std::string& message) {
  static const std::vector<std::pair<std::string_view, std::string_view>> known{
      {"end of map not found", "this line does not fit the map around it"},
      {"end of sequence not found", "this line does not fit the list around it"},
      {"end of map flow not found", "a '}' is missing"},
      {"end of sequence flow not found", "a ']' is missing"},
      {"illegal EOF in scalar", "the closing quote is missing"},
      {"illegal map value", "a ':' where no value may begin"},
      {"illegal block entry", "a '-' where no list item may begin"},
  };
  for (const auto& [theirs, ours] : known) {
    if (message == theirs) return std::string(ours);
  }
  return message;
}

std::string advice(const std::string& message) {
  if (message == "end of map not found" || message == "end of sequence not found") {
    return "check the indentation of this line and the one above";
  }
  if (message == "unknown token" || message == "unexpected character in block scalar") {
    return "quote a text that begins with > | % @ & * ! or `";
  }
  if (message == "illegal map value") return "quote the text if the ':' belongs to it";
  return {};
}

void parse(std::string_view text, const Lines& lines, YamlDocument& out) {
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(lines);
  try {
    YAML::Parser parser(stream);
    if (parser.HandleNextDocument(builder)) {
      out.root = builder.take_root();
      const auto last = builder.last_quoted();
      if (last && is_unterminated(text, lines.offset(*last))) {
        out.faults.push_back({*last, "the closing quote is missing", ""});
        return;
      }
      TreeBuilder second(lines);
      if (parser.HandleNextDocument(second)) {
        out.faults.push_back({second.take_root().place, "a second document begins here",
                              "a configuration is one document; look for stray characters"});
      }
    } else {
      out.root = YamlNode{};
      out.root->place = {1, 1};
    }
  } catch (const Refused& refused) {
    out.faults.push_back(refused.fault);
  } catch (const YAML::Exception& error) {
    out.faults.push_back({lines.place(error.mark.line, error.mark.column),
                          "not valid YAML: " + plain_words(error.msg), advice(error.msg)});
  } catch (const std::exception&) {  // out of memory, or a fault inside the library
    out.faults.push_back({{1, 1}, "not valid YAML", ""});
  }
}

}  // namespace

const YamlMember* YamlNode::find(std::string_view key) const {
  for (const YamlMember& member : members) {
    if (member.key == key) return &member;
  }
  return nullptr;
}

YamlDocument read_yaml(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.substr(0, 3) == byte_order_mark) text.remove_prefix(3);
  const Lines lines(text);
  YamlDocument out;
  scan_bytes(text, lines, out.faults);
  if (out.faults.empty()) scan_tabs(text, lines, out.faults);
  if (out.faults.empty()) parse(text, lines, out);
  if (!out.faults.empty()) out.root.reset();
  return out;
}

}  // namespace flashgate

// Takes keys and internal addresses out of a backend's message; declared in reply_facts.hpp.
// Works word by word: a word is what stands between white space, quotes, commas and brackets.
#include <algorithm>
#include <array>

#include "protocol/reply_facts.hpp"

namespace flashgate {
namespace {

constexpr std::string_view key_mask = "[key]";
constexpr std::string_view address_mask = "[address]";
constexpr std::size_t key_tail_bytes_min = 6;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_alnum(char c) {
  return is_digit(c) || is_alpha(c);
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

bool is_separator(char c) {
  return static_cast<unsigned char>(c) <= ' ' ||
         std::string_view("\"'`,;()<>{}|\\").find(c) != std::string_view::npos;
}

bool equals_lower(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return lower(a) == b; });
}

bool ends_lower(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         equals_lower(text.substr(text.size() - suffix.size()), suffix);
}

// Offset of a provider's key in a word ("key=sk-abc"), or npos.
std::size_t find_key(std::string_view word) {
  static constexpr std::array<std::string_view, 11> prefixes = {
      "sk-", "fg_", "sk_", "gsk_", "hf_", "AIza", "xai-", "nvapi-", "pk-", "ghp_", "eyJ"};
  for (const std::string_view prefix : prefixes) {
    const std::size_t at = word.find(prefix);
    if (at == std::string_view::npos) continue;
    if (at > 0 && is_alnum(word[at - 1])) continue;
    if (word.size() - at - prefix.size() >= key_tail_bytes_min) return at;
  }
  return std::string_view::npos;
}

struct HostPort {
  std::string_view host{};
  std::string_view port{};
  bool brackets = false;
};

// "host", "host:port", "[v6]:port", all before any '/'.
HostPort split(std::string_view text) {
  text = text.substr(0, text.find_first_of("/?#"));
  if (const std::size_t user = text.rfind('@'); user != text.npos) text.remove_prefix(user + 1);
  HostPort out;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return out;
    out.host = text.substr(1, end - 1);
    out.brackets = true;
    text.remove_prefix(end + 1);
    if (text.starts_with(':')) out.port = text.substr(1);
    return out;
  }
  const std::size_t colon = text.find(':');
  out.host = text.substr(0, colon);
  if (colon != text.npos) out.port = text.substr(colon + 1);
  return out;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

bool is_ipv4(std::string_view host) {
  int parts = 0;
  while (parts < 4) {
    const std::size_t end = std::min(host.find('.'), host.size());
    if (end > 3 || !is_number(host.substr(0, end))) return false;
    ++parts;
    if (end == host.size()) return parts == 4;
    host.remove_prefix(end + 1);
  }
  return false;
}

bool is_ipv6(std::string_view host) {
  const auto colons = std::count(host.begin(), host.end(), ':');
  return colons >= 2 && host.size() >= 3 && host.find("::") != host.npos &&
         std::all_of(host.begin(), host.end(), [](char c) {
           return c == ':' || c == '.' || c == '%' || is_digit(c) ||
                  (lower(c) >= 'a' && lower(c) <= 'f');
         });
}

bool is_host_name(std::string_view host) {
  return !host.empty() && host.size() <= 253 && is_alnum(host.front()) &&
         std::all_of(host.begin(), host.end(),
                     [](char c) { return is_alnum(c) || c == '-' || c == '.' || c == '_'; });
}

bool has_internal_suffix(std::string_view host) {
  static constexpr std::array<std::string_view, 10> suffixes = {
      ".internal", ".local", ".lan",   ".svc",         ".cluster.local",
      ".corp",     ".home",  ".intra", ".localdomain", ".private"};
  return equals_lower(host, "localhost") || ends_lower(host, ".localhost") ||
         std::any_of(suffixes.begin(), suffixes.end(),
                     [host](std::string_view suffix) { return ends_lower(host, suffix); });
}

// A host that says where something runs inside: an address, an internal name, or no domain at all.
bool is_internal(std::string_view host) {
  return is_ipv4(host) || is_ipv6(host) || has_internal_suffix(host) ||
         host.find('.') == std::string_view::npos;
}

bool is_internal_url(std::string_view after_scheme) {
  const HostPort where = split(after_scheme);
  return where.brackets || !where.port.empty() || is_internal(where.host) ||
         after_scheme.substr(0, after_scheme.find('/')).find('@') != std::string_view::npos;
}

// Words after which a bare "name:port" is an address and not, say, "tokens:4096".
bool announces_address(std::string_view word) {
  static constexpr std::array<std::string_view, 9> words = {
      "to", "at", "host", "from", "on", "upstream", "server", "address", "backend"};
  return std::any_of(words.begin(), words.end(),
                     [word](std::string_view known) { return equals_lower(word, known); });
}

bool is_address(std::string_view word, std::string_view word_before) {
  const HostPort where = split(word);
  if (is_ipv6(word)) return true;
  if (where.brackets) return is_ipv6(where.host);
  if (is_ipv4(where.host)) return true;
  if (!is_host_name(where.host)) return false;
  const bool internal = has_internal_suffix(where.host);
  if (where.port.empty()) return internal && where.host.find('.') != where.host.npos;
  if (!is_number(where.port) || where.port.size() > 5) return false;
  if (internal) return true;
  const std::size_t dot = where.host.rfind('.');
  if (dot != where.host.npos) return dot + 2 < where.host.size() && is_alpha(where.host[dot + 1]);
  return std::any_of(where.host.begin(), where.host.end(), is_alpha) &&
         (announces_address(word_before) || word.find('@') != word.npos);
}

// "Incorrect API key provided: 0123…": no prefix tells it, but the words before do.
bool is_announced_key(std::string_view word, std::string_view word_before) {
  constexpr std::size_t bytes_min = 16;
  if (word_before.ends_with(':')) word_before.remove_suffix(1);
  return word.size() >= bytes_min && std::any_of(word.begin(), word.end(), is_digit) &&
         (equals_lower(word_before, "key") || equals_lower(word_before, "provided") ||
          equals_lower(word_before, "token") || equals_lower(word_before, "api_key"));
}

class Masker {
 public:
  explicit Masker(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && is_separator(text_[at_])) ++at_;
      out_.append(text_.substr(begin, at_ - begin));
      const std::size_t word = at_;
      while (at_ < text_.size() && !is_separator(text_[at_])) ++at_;
      if (at_ > word) take(text_.substr(word, at_ - word));
    }
    return std::move(out_);
  }

 private:
  void take(std::string_view word) {
    const std::string_view before = before_;
    before_ = word;
    // What ends a sentence is not part of an address.
    std::size_t size = word.size();
    while (size > 0 && std::string_view(".:!?").find(word[size - 1]) != std::string_view::npos)
      --size;
    const std::string_view rest = word.substr(size);
    word = word.substr(0, size);
    if ((equals_lower(before, "bearer") || equals_lower(before, "basic")) &&
        word.size() >= key_tail_bytes_min) {
      out_ += key_mask;
    } else if (is_announced_key(word, before)) {
      out_ += key_mask;
    } else if (const std::size_t key = find_key(word); key != word.npos) {
      out_.append(word.substr(0, key));
      out_ += key_mask;
    } else if (const std::size_t scheme = word.find("://"); scheme != word.npos) {
      take_url(word, scheme);
    } else if (const std::size_t equals = word.find('='); equals != word.npos) {
      const std::string_view value = word.substr(equals + 1);
      out_.append(word.substr(0, equals + 1));
      out_.append(is_address(value, "host") ? address_mask : value);
    } else {
      out_.append(is_address(word, before) ? address_mask : word);
    }
    out_.append(rest);
  }

  void take_url(std::string_view word, std::size_t scheme) {
    std::size_t begin = scheme;
    while (begin > 0 && is_alnum(word[begin - 1])) --begin;
    out_.append(word.substr(0, begin));
    out_.append(is_internal_url(word.substr(scheme + 3)) ? address_mask : word.substr(begin));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string_view before_{};
  std::string out_{};
};

}  // namespace

std::string mask_secrets(std::string_view message) {
  return Masker(message).run();
}

}  // namespace flashgate

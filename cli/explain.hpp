#pragma once
// `flashgate explain`: where a request would go and why, by the very code that routes traffic.
// Nothing is sent anywhere.
#include <string>
#include <vector>

namespace flashgate {

struct ExplainCommand {
  std::string config{};                       // empty: where `serve` would look
  std::string request = "-";                  // a file with the JSON body; -: standard input
  std::string path = "/v1/chat/completions";  // the endpoint it is sent to
  std::vector<std::string> headers{};         // "name: value"
  bool json = false;
};

/// 0: a route was found, 1: the request or the configuration is refused, 2: usage.
int run_explain(const ExplainCommand& command);

}  // namespace flashgate

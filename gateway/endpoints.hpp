#pragma once
// The endpoint table: which path is what. Everything under /v1/ that we do not answer ourselves
// goes to a backend; nothing else exists on the data plane but the two health paths.
#include <string>
#include <string_view>

#include "gateway/session.hpp"
#include "protocol/api_kind.hpp"

namespace flashgate {

enum class EndpointKind { livez, readyz, models, model, proxy, unknown };

struct Endpoint {
  EndpointKind kind = EndpointKind::unknown;
  ApiKind api = ApiKind::other;
  bool post_only = false;
  std::string_view allow{};  // methods, for 405
};

/// One normal form for routing and for the backend: no scheme or authority, no empty, `.` or `..`
/// segments, no trailing slash; escapes of unreserved characters undone. The query is kept apart.
struct NormalPath {
  bool ok = false;
  std::string path{};
  std::string query{};  // without `?`
};
NormalPath normalize_target(std::string_view target);

Endpoint find_endpoint(std::string_view path);

/// Answers one request, whatever it is.
Task<void> serve(Session& session);

}  // namespace flashgate

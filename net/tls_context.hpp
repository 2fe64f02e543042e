#pragma once
// TLS contexts with every default that matters set: peers verified, TLS 1.2 or newer, own CA if
// named. Built once at start; sessions are made from them by any worker.
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "base/result.hpp"

namespace flashgate {

using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

/// `ca_file` empty: the system's authorities.
Result<TlsContext> make_client_context(const std::string& ca_file, bool insecure);
Result<TlsContext> make_server_context(const std::string& cert_file, const std::string& key_file);

}  // namespace flashgate

#include "net/tls_context.hpp"

#include <openssl/ssl.h>

namespace flashgate {
namespace {

namespace ssl = boost::asio::ssl;

void harden(ssl::context& context) {
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.native_handle(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context.native_handle(), SSL_MODE_RELEASE_BUFFERS);
}

Error failed(const std::string& what, const boost::system::error_code& error) {
  return {"tls_setup", what + ": " + error.message()};
}

}  // namespace

Result<TlsContext> make_client_context(const std::string& ca_file, bool insecure) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_client);
  harden(*context);
  boost::system::error_code error;
  if (ca_file.empty())
    context->set_default_verify_paths(error);
  else
    context->load_verify_file(ca_file, error);
  if (error) return failed("cannot load authorities from '" + ca_file + "'", error);
  context->set_verify_mode(insecure ? ssl::verify_none : ssl::verify_peer, error);
  if (error) return failed("cannot set verification", error);
  return context;
}

Result<TlsContext> make_server_context(const std::string& cert_file, const std::string& key_file) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  harden(*context);
  boost::system::error_code error;
  context->use_certificate_chain_file(cert_file, error);
  if (error) return failed("cannot load the certificate '" + cert_file + "'", error);
  context->use_private_key_file(key_file, ssl::context::pem, error);
  if (error) return failed("cannot load the private key '" + key_file + "'", error);
  return context;
}

}  // namespace flashgate

#include "base/url.hpp"

#include <catch2/catch.hpp>

using namespace flashgate;

TEST_CASE("a base URL is taken apart and put together again") {
  struct Row {
    const char* text;
    const char* host;
    int port;
    const char* path;
    const char* authority;
  };
  const Row rows[] = {
      {"http://127.0.0.1:8000/v1", "127.0.0.1", 8000, "/v1", "127.0.0.1:8000"},
      {"https://Your-Endpoint/v1/", "your-endpoint", 443, "/v1", "your-endpoint"},
      {"http://host", "host", 80, "", "host"},
      {"HTTP://host:80///", "host", 80, "", "host"},
      {"https://host:80/a/b", "host", 80, "/a/b", "host:80"},
      {"http://[::1]:9/v1", "::1", 9, "/v1", "[::1]:9"},
      {"https://[2001:db8::1]", "2001:db8::1", 443, "", "[2001:db8::1]"},
      {"http://my_service.ns.svc.cluster.local", "my_service.ns.svc.cluster.local", 80, "",
       "my_service.ns.svc.cluster.local"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const auto url = parse_url(row.text);
    REQUIRE(url.has_value());
    CHECK(url->host == row.host);
    CHECK(url->port == row.port);
    CHECK(url->path == row.path);
    CHECK(url->authority() == row.authority);
    CHECK(*parse_url(url->text()) == *url);
  }
}

TEST_CASE("a URL that we could not or should not connect to is refused") {
  const std::string_view rows[] = {
      "",
      "host",
      "ftp://host",
      "unix:///run/x",
      "http://",
      "http:///v1",
      "http://user@host",
      "http://user:pw@host/v1",
      "http://host?x=1",
      "http://host/v1#x",
      "http://host:0",
      "http://host:65536",
      "http://host:8o",
      "http://host:",
      "http://host:-1",
      "http://::1:80",
      "http://[::1",
      "http://[::1]x",
      "http://[fe80::1%25eth0]",
      "http://[127.0.0.1]",
      "http://a..b",
      "http://.a",
      "http://1.2.3.4.5",
      "http://256.1.1.1",
      "http://ho st",
      "http://host/a b",
      "http://host/\r\nX: y",
      "http://host\\evil",
      "http://h\xc3\xb6st",
      std::string_view("http://ho\0st", 12),
  };
  for (const auto& row : rows) {
    INFO(row);
    CHECK_FALSE(parse_url(row).has_value());
  }
  CHECK_FALSE(parse_url("http://" + std::string(100000, 'a')).has_value());
  CHECK_FALSE(parse_url("http://host/" + std::string(100000, 'a')).has_value());
}

TEST_CASE("a listener's address names host and port") {
  CHECK(*parse_host_port("127.0.0.1:8080") == HostPort{"127.0.0.1", 8080});
  CHECK(*parse_host_port("[::1]:8080") == HostPort{"::1", 8080});
  CHECK(*parse_host_port("localhost:0") == HostPort{"localhost", 0});
  CHECK(*parse_host_port(":8080") == HostPort{"0.0.0.0", 8080});
  CHECK(*parse_host_port("*:8080") == HostPort{"0.0.0.0", 8080});
  CHECK(*parse_host_port("[::]:1") == HostPort{"::", 1});
  for (const auto* row : {"8080", "127.0.0.1", "::1:8080", "[::1]", "127.0.0.1:", "h:99999",
                          "[*]:1", "a b:1", "1.2.3:80"}) {
    INFO(row);
    CHECK_FALSE(parse_host_port(row).has_value());
  }
}

TEST_CASE("loopback is this machine, local is what no stranger owns") {
  struct Row {
    const char* host;
    bool loopback;
    bool local;
  };
  const Row rows[] = {
      {"127.0.0.1", true, true},
      {"127.9.9.9", true, true},
      {"localhost", true, true},
      {"LocalHost.", true, true},
      {"api.localhost", true, true},
      {"::1", true, true},
      {"::ffff:127.0.0.1", true, true},
      {"10.1.2.3", false, true},
      {"172.16.0.1", false, true},
      {"172.31.255.255", false, true},
      {"172.32.0.1", false, false},
      {"192.168.1.1", false, true},
      {"169.254.1.1", false, true},
      {"fd00::1", false, true},
      {"fe80::1", false, true},
      {"::ffff:10.0.0.1", false, true},
      {"0.0.0.0", false, false},
      {"::", false, false},
      {"8.8.8.8", false, false},
      {"2001:db8::1", false, false},
      {"localhost.evil.com", false, false},
      {"127.0.0.1.evil.com", false, false},
      {"notlocalhost", false, false},
      {"", false, false},
  };
  for (const Row& row : rows) {
    INFO(row.host);
    CHECK(is_loopback_address(row.host) == row.loopback);
    CHECK(is_local_address(row.host) == row.local);
  }
}

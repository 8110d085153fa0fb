#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "common/base/typed_error.h"
#include "common/rpc/address.h"
#include "tests/testing/matchers.h"

namespace kvasir {
namespace {

struct Case {
  std::string text;
  std::string host;  // empty: refused
  std::int32_t port = 0;
};
void PrintTo(const Case& c, std::ostream* out) { *out << '"' << c.text << '"'; }

class AddressTest : public ::testing::TestWithParam<Case> {};

TEST_P(AddressTest, ParsesOrSaysWhy) {
  const absl::StatusOr<Address> address = ParseAddress(GetParam().text);
  if (GetParam().host.empty()) {
    ASSERT_FALSE(address.ok());
    EXPECT_EQ(ReasonOf(address.status()), "BAD_ADDRESS");
    return;
  }
  KVASIR_ASSERT_OK(address);
  EXPECT_EQ(address->host, GetParam().host);
  EXPECT_EQ(address->port, GetParam().port);
  EXPECT_EQ(AddressText(*address), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    All, AddressTest,
    ::testing::Values(Case{"node-a:7451", "node-a", 7451}, Case{"127.0.0.1:1", "127.0.0.1", 1},
                      Case{"[::1]:65535", "::1", 65535}, Case{"node-a", "", 0}, Case{":7451", "", 0},
                      Case{"a:0", "", 0}, Case{"a:65536", "", 0}, Case{"a:-1", "", 0}, Case{"a:12x", "", 0},
                      Case{"a:", "", 0}, Case{"a b:1", "", 0}, Case{"dns:///a:1", "", 0},
                      Case{"unix:/tmp/x", "", 0}, Case{std::string(300, 'a') + ":1", "", 0}, Case{"", "", 0},
                      Case{"::1:80", "", 0}));

TEST(Address, PortZeroIsForServersOnly) {
  KVASIR_EXPECT_OK(ParseAddress("127.0.0.1:0", /*port_zero=*/true));
  EXPECT_FALSE(ParseAddress("127.0.0.1:0").ok());
}

TEST(Address, LoopbackIsKnown) {
  EXPECT_TRUE(IsLoopback({"localhost", 1}));
  EXPECT_TRUE(IsLoopback({"127.1.2.3", 1}));
  EXPECT_TRUE(IsLoopback({"::1", 1}));
  EXPECT_FALSE(IsLoopback({"0.0.0.0", 1}));
  EXPECT_FALSE(IsLoopback({"node-a", 1}));
}

}  // namespace
}  // namespace kvasir

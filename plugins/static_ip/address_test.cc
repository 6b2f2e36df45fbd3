#include "plugins/static_ip/address.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "plugins/static_ip/static_ip_objects.h"

namespace outboard::static_ip {
namespace {

Address At(const std::string& text) {
  const auto address = ParseAddress(text);
  EXPECT_TRUE(address.has_value()) << text;
  return address.value_or(Address());
}

TEST(Address, HasOneTextAndOneName) {
  EXPECT_EQ(NameOf(At("10.0.0.5")), "10-0-0-5");
  EXPECT_EQ(NameOf(At("fd00::5")), "fd00-0000-0000-0000-0000-0000-0000-0005");
  EXPECT_EQ(At("fd00::5"), At("FD00:0:0::0005"));
  EXPECT_EQ(ToText(At("fd00:0:0:0:0:0:0:5")), "fd00::5");
  for (const char* text :
       {"0.0.0.0", "255.255.255.255", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "1.2.3.4"})
    EXPECT_EQ(AddressOfName(NameOf(At(text))), At(text)) << text;
  for (const char* text :
       {"", "10.0.0", "10.0.0.256", "10.0.0.05", " 10.0.0.5", "10.0.0.5 ", "fe80::1%eth0",
        "0x0a.0.0.5", ":::", "10.0.0.5/32", "٣.0.0.1", "1.2.3.4.5"})
    EXPECT_FALSE(ParseAddress(text).has_value()) << text;
  for (const char* name :
       {"10.0.0.5", "10-0-0-05", "10-0-0", "10-0-0-256", "fd00-0-0-0-0-0-0-5",
        "FD00-0000-0000-0000-0000-0000-0000-0005", "a-b-c-d", "-----", "---", ""})
    EXPECT_FALSE(AddressOfName(name).has_value()) << name;
}

TEST(Range, IsReadStrictly) {
  EXPECT_EQ(ToText(ParseCidr("10.0.0.0/24")->last), "10.0.0.255");
  EXPECT_EQ(ToText(ParseCidr("::/0")->last), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
  EXPECT_EQ(ToText(ParseCidr("0.0.0.0/0")->last), "255.255.255.255");
  EXPECT_EQ(ToText(ParseCidr("10.0.0.5/32")->last), "10.0.0.5");
  EXPECT_EQ(ToText(ParseRange("10.0.0.5-10.0.1.7")->last), "10.0.1.7");
  EXPECT_EQ(ToText(ParseRange("10.0.0.5")->last), "10.0.0.5");
  for (const char* text : {"10.0.0.1/24", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/ 8",
                           "/8", "fd00::/129", "10.0.0.0/+8", "10.0.0.0"})
    EXPECT_FALSE(ParseCidr(text).has_value()) << text;
  for (const char* text : {"10.0.0.9-10.0.0.5", "10.0.0.9-fd00::1", "10.0.0.1-2", "-", "10.0.0.1-",
                           "1.1.1.1-1.1.1.2-1.1.1.3"})
    EXPECT_FALSE(ParseRange(text).has_value()) << text;
}

TEST(AddressSet, AgreesWithASetOfNumbers) {
  std::mt19937 random(3);
  AddressSet runs;
  std::set<int> plain;
  // Both ends of the address space, and the border between the families.
  const auto address = [](int i) {
    return i < 128 ? Address{false, absl::uint128(0xffffff80u) + i}
                   : Address{true, absl::uint128(i - 128)};
  };
  for (int round = 0; round < 20000; ++round) {
    const bool v6 = random() % 2;
    int first = static_cast<int>(random() % 128) + (v6 ? 128 : 0);
    int last = static_cast<int>(random() % 128) + (v6 ? 128 : 0);
    if (random() % 2) last = std::min(first + 2, v6 ? 255 : 127);
    if (last < first) std::swap(first, last);
    const Range range{address(first), address(last)};
    if (random() % 2) {
      runs.Add(range);
      for (int i = first; i <= last; ++i) plain.insert(i);
    } else {
      runs.Remove(range);
      for (int i = first; i <= last; ++i) plain.erase(i);
    }
    ASSERT_EQ(runs.empty(), plain.empty());
    if (!plain.empty()) {
      ASSERT_EQ(runs.lowest(), address(*plain.begin()));
    }
    const int probe = static_cast<int>(random() % 256);
    ASSERT_EQ(runs.Contains(address(probe)), plain.contains(probe)) << probe;
    size_t expected = 0;
    for (auto it = plain.begin(); it != plain.end(); ++it)
      expected += it == plain.begin() || *std::prev(it) + 1 != *it || *it == 128 ? 1 : 0;
    ASSERT_EQ(runs.runs(), expected);
  }
}

v1beta1::GenericObject Object(const std::string& name, const std::string& json) {
  v1beta1::GenericObject object;
  object.set_name(name);
  object.set_uid("u");
  object.set_json(json);
  return object;
}

TEST(ReadPool, LeavesOutWhatIsNotGivenOut) {
  const PoolSpec pool = ReadPool(Object(
      "p", R"({"spec":{"cidr":"10.0.0.0/29","excluded":["10.0.0.2","10.0.0.4-10.0.0.5"]}})"));
  ASSERT_EQ(pool.fault, "");
  for (int last = 0; last < 8; ++last)
    EXPECT_EQ(pool.allowed.Contains(At("10.0.0." + std::to_string(last))),
              last == 1 || last == 3 || last == 6)
        << last;
  EXPECT_EQ(ToText(ReadPool(Object("p", R"({"spec":{"cidr":"10.0.0.0/29","ranges":["10.0.0.0"]}})"))
                       .allowed.lowest()),
            "10.0.0.0");
  EXPECT_EQ(ToText(ReadPool(Object("p", R"({"spec":{"cidr":"10.0.0.4/31"}})")).allowed.lowest()),
            "10.0.0.4");
  EXPECT_EQ(ToText(ReadPool(Object("p", R"({"spec":{"cidr":"fd00::/64"}})")).allowed.lowest()),
            "fd00::1");
  for (const char* spec :
       {"{}", "3", R"({"cidr":"10.0.0.1/24"})", R"({"cidr":["10.0.0.0/24"]})",
        R"({"cidr":"10.0.0.0/24","ranges":["10.0.1.1"]})",
        R"({"cidr":"10.0.0.0/24","ranges":"10.0.0.1"})", R"({"cidr":"10.0.0.0/24","excluded":[3]})",
        R"({"cidr":"10.0.0.0/24","releasePolicy":"Sometimes"})",
        R"({"cidr":"10.0.0.0/24","nodeSelector":["a"]})",
        R"({"cidr":"10.0.0.0/24","nodeSelector":{"a":1}})"})
    EXPECT_NE(ReadPool(Object("p", std::string(R"({"spec":)") + spec + "}")).fault, "") << spec;
}

// Users write objects: no content causes a crash, or an IP that the object does not contain.
TEST(Objects, SurviveAnything) {
  using nlohmann::json;
  std::mt19937 random(11);
  const std::vector<json> absurd = {nullptr,
                                    true,
                                    -1,
                                    1e300,
                                    "",
                                    "10.0.0.5",
                                    "10.0.0.0/24",
                                    "fd00::/64",
                                    "0.0.0.0/0",
                                    "::/0",
                                    "\xff",
                                    json::array(),
                                    json::object(),
                                    json::array({"10.0.0.1-10.0.0.3", "10.0.0.9"}),
                                    json::array({1, nullptr}),
                                    json{{"a", "b"}},
                                    json{{"a", 1}},
                                    json::array({json{{"type", "Accepted"}, {"status", "True"}}}),
                                    std::string(3000, '1')};
  int usable = 0;
  for (int round = 0; round < 5000; ++round) {
    json whole = json::object();
    for (const char* path :
         {"/metadata", "/metadata/finalizers", "/metadata/labels", "/spec", "/spec/cidr",
          "/spec/ranges", "/spec/excluded", "/spec/nodeSelector", "/spec/releasePolicy", "/spec/ip",
          "/spec/owner", "/spec/owner/pod", "/spec/owner/namespace", "/status",
          "/status/conditions", "/status/phase"}) {
      if (random() % 3 == 0) continue;
      try {
        whole[json::json_pointer(path)] = absurd[random() % absurd.size()];
      } catch (const json::exception&) {  // The path passes through a value that is not an object.
      }
    }
    const std::string text = whole.dump(-1, ' ', false, json::error_handler_t::replace);
    const PoolSpec pool = ReadPool(Object("p", text));
    if (pool.fault.empty()) {
      ++usable;
      if (!pool.allowed.empty()) {
        EXPECT_TRUE(pool.cidr.Contains(pool.allowed.lowest()));
      }
    } else {
      EXPECT_TRUE(pool.allowed.empty());
    }
    const Reservation reservation =
        ReadReservation(Object(random() % 2 ? "10-0-0-5" : "nonsense", text));
    if (reservation.fault.empty()) {
      EXPECT_EQ(ToText(*reservation.address), "10.0.0.5");
    }
  }
  EXPECT_GT(usable, 0);
}

}  // namespace
}  // namespace outboard::static_ip

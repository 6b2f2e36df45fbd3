#include "plugin_host/runtime/cut_text.h"

#include <gtest/gtest.h>

#include <string>

namespace outboard::runtime {
namespace {

TEST(CutText, CutsBetweenCharacters) {
  EXPECT_EQ(CutText("short"), "short");
  EXPECT_EQ(CutText("ab\xc3\xa9", 3), "ab");
  EXPECT_EQ(CutText("ab\xc3\xa9", 4), "ab\xc3\xa9");
}

TEST(TextForPeople, KeepsCharactersAndReplacesOtherBytes) {
  for (const char* text : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                           "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(TextForPeople(text), text);
  }
  EXPECT_EQ(TextForPeople("a\xff"), "a?");
  EXPECT_EQ(TextForPeople("\xc3"), "?") << "ends within a character";
  EXPECT_EQ(TextForPeople("\xe2\x82z"), "??z");
  EXPECT_EQ(TextForPeople("\x80\xc3\xa9"), "?\xc3\xa9");
  EXPECT_EQ(TextForPeople("\xc0\xaf"), "??") << "longer than necessary";
  EXPECT_EQ(TextForPeople("\xe0\x80\xaf"), "???");
  EXPECT_EQ(TextForPeople("\xf0\x80\x80\xaf"), "????");
  EXPECT_EQ(TextForPeople("\xed\xa0\x80"), "???") << "a surrogate";
  EXPECT_EQ(TextForPeople("\xf4\x90\x80\x80"), "????") << "beyond U+10FFFF";
  EXPECT_EQ(TextForPeople("\xf5\x80\x80\x80"), "????");
  EXPECT_EQ(TextForPeople("abcd\xc3\xa9", 5), "abcd");
}

}  // namespace
}  // namespace outboard::runtime

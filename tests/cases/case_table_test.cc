// The table of the cases is true: each case is in it, and what it names exists.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;

// By section, as they are numbered in the collection that they come from.
const std::map<char, std::set<int>> kCases = {
    {'A', {1, 3, 5, 6, 7, 9, 12, 14}},
    {'B', {15, 19, 20, 21, 22, 23, 24}},
    {'C', {28, 30, 31, 32, 34}},
    {'D', {35, 36, 39, 41, 42, 43, 44}},
    {'E', {45, 46, 48, 50, 52, 53, 54, 55, 56, 57, 58, 59, 61, 63, 64}},
    {'F', {65, 67, 70, 71, 73, 75, 76, 77}},
    {'G', {79, 81, 84, 86, 87, 90, 91}},
};

const fs::path kTests = fs::path(GYRE_SOURCE_DIR) / "tests";

std::string TextOf(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// What matches between single backquotes in each row of the table, by its case.
struct Row {
  std::set<std::string> tests;    // as Suite.Name
  std::set<std::string> scripts;  // of tests/integration
  bool open = false;
};
std::map<int, Row> Table(std::map<char, std::set<int>>& cases) {
  static const std::regex begin("\\| ([A-Z])([0-9]+) \\|.*");
  static const std::regex test("`([A-Za-z0-9]+\\.[A-Za-z0-9_]+)`");
  static const std::regex script("`([a-z_]+_test\\.py)`");
  std::map<int, Row> table;
  std::istringstream lines(TextOf(kTests / "cases/README.md"));
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, begin)) continue;
    const int number = std::stoi(match[2]);
    EXPECT_TRUE(cases[match[1].str()[0]].insert(number).second) << "case " << number << " has two rows";
    Row& row = table[number];
    for (std::sregex_iterator it(line.begin(), line.end(), script), end; it != end; ++it)
      row.scripts.insert((*it)[1]);
    for (std::sregex_iterator it(line.begin(), line.end(), test), end; it != end; ++it)
      if (!row.scripts.contains((*it)[1])) row.tests.insert((*it)[1]);
    row.open = line.find("| open: ") != std::string::npos;
  }
  return table;
}

// Every test that is written in C++, as Suite.Name.
std::set<std::string> AllTests() {
  static const std::regex test("\\bTEST(_F|_P)?\\((\\w+),\\s*(\\w+)\\)");
  std::set<std::string> tests;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kTests)) {
    if (!entry.path().string().ends_with("_test.cc")) continue;
    const std::string text = TextOf(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), test), end; it != end; ++it)
      tests.insert((*it)[2].str() + "." + (*it)[3].str());
  }
  return tests;
}

TEST(CaseTable, HasEachCaseOnceAndItsTestsExist) {
  std::map<char, std::set<int>> cases;
  const std::map<int, Row> table = Table(cases);
  EXPECT_EQ(cases, kCases);
  const std::set<std::string> all = AllTests();
  EXPECT_GT(all.size(), 100u);
  for (const auto& [number, row] : table) {
    EXPECT_EQ(row.tests.empty() && row.scripts.empty(), row.open)
        << "case " << number << " has tests or says why not";
    for (const std::string& test : row.tests)
      EXPECT_TRUE(all.contains(test)) << "case " << number << " names " << test << ", which is nowhere";
    for (const std::string& script : row.scripts)
      EXPECT_TRUE(fs::exists(kTests / "integration" / script)) << "case " << number << " names " << script;
  }
}

TEST(CaseTable, NamesEachTestThatIsNamedByACase) {
  static const std::regex named("\\w+\\.Case([0-9]+)_\\w+");
  std::map<char, std::set<int>> cases;
  std::map<int, Row> table = Table(cases);
  for (const std::string& test : AllTests()) {
    std::smatch match;
    if (!std::regex_match(test, match, named)) continue;
    EXPECT_TRUE(table[std::stoi(match[1])].tests.contains(test)) << test << " is not in the row of its case";
  }
}

}  // namespace
